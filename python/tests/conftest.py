"""What all tests share."""

import os
from pathlib import Path

import pytest

# The repository, whose sources some tests compare with; the package itself is the installed one.
TOP = Path(os.environ.get("REPOPS_TOP", Path(__file__).resolve().parents[2]))


@pytest.fixture
def top() -> Path:
    return TOP
