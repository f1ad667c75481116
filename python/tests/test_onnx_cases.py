"""ONNX's own cases of operators: known ones pass, and all others have a known reason."""

import os
from pathlib import Path

import pytest

pytest.importorskip("onnx")
import onnx_cases  # noqa: E402

import repops.onnx  # noqa: E402,F401
from repops.onnx._table import REFUSED, by_theme  # noqa: E402

HERE = Path(__file__).parent
FLOOR = 900  # cases that must pass with any version of onnx
EVERY = 1 if os.environ.get("REPOPS_ONNX") == "all" else 12  # one case of so many is tried as a job


def reasons(*kinds):
    lines = (HERE / "onnx_refused.txt").read_text().splitlines()
    words = [line.split(" ", 2) for line in lines if line[0] != "#"]
    return {name: why for kind, name, why in words if kind in kinds}


def tried(cases, folder, as_job):
    """The number of cases that pass; names of the others with their errors."""
    passed, failed = 0, {}
    for case in cases:
        try:
            onnx_cases.run(case, folder, as_job)
            passed += 1
        except Exception as error:  # noqa: BLE001
            failed[case.name] = " ".join(str(error).split())[:200]
    return passed, failed


@pytest.fixture(scope="module")
def cases():
    return list(onnx_cases.cases())


@pytest.mark.filterwarnings("ignore")
def test_all_pass_but_those_of_a_list(cases, tmp_path):
    passed, failed = tried(cases, tmp_path, False)
    known = reasons("run")
    assert not {n: why for n, why in failed.items() if n not in known}
    assert passed >= FLOOR
    gone = [n for n in known if n not in failed and n in {c.name for c in cases}]
    assert not gone, "these pass, and stand in onnx_refused.txt"


@pytest.mark.filterwarnings("ignore")
def test_as_jobs_they_have_the_bits_of_the_block(cases, command, tmp_path):
    own = cases[::EVERY]
    passed, failed = tried(own, tmp_path, True)
    known = reasons("run", "job")
    assert not {n: why for n, why in failed.items() if n not in known}
    assert passed >= FLOOR // EVERY
    assert not [c.name for c in own if c.name in known and c.name not in failed]


@pytest.mark.filterwarnings("ignore")
def test_the_bits_of_some_are_known(capsys):
    code = onnx_cases.main(["--hashes", str(HERE / "onnx_cases.txt")])
    said = capsys.readouterr().out
    assert code == 0 and "200 of 200 cases pass" in said, said


def test_the_documents_list_is_the_tables(top):
    text = " ".join((top / "docs/onnx.md").read_text().split())
    for theme, names in by_theme().items():
        assert f"- **{theme}.** {', '.join(names)}." in text
    for (domain, name), why in REFUSED.items():
        assert (f"{domain}.{name}" if domain else name) in text and f": {why}." in text
