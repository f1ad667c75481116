"""What all tests share."""

import os
import subprocess
from pathlib import Path

import pytest

# The repository, whose sources some tests compare with; the package itself is the installed one.
TOP = Path(os.environ.get("REPOPS_TOP", Path(__file__).resolve().parents[2]))


def called(*words, code=0):
    """What a program prints, which must end with this code."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def top() -> Path:
    return TOP


@pytest.fixture(scope="session")
def command() -> str:
    """The program `verde`."""
    found = os.environ.get("VERDE")
    if not found:
        pytest.skip("VERDE names no command `verde`")
    return found
