"""Runs gpu.py, which is made for a machine with a GPU, on the device "simt"."""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# Makes an element of tanh wrong on the device.
WRONG = """
import sys
sys.argv = ["gpu.py", *sys.argv[1:]]
import gpu
from repops.torch import _mode
real = _mode.computed
def wrong(mode, func, *more):
    result = real(mode, func, *more)
    if str(func) == "aten.tanh.default":
        result.view(-1)[0] = 0.25
    return result
_mode.computed = wrong
sys.exit(gpu.main())
"""
BROKEN = """
import sys
sys.argv = ["gpu.py", *sys.argv[1:]]
import gpu
def none(small):
    raise RuntimeError("there is none\\nof it")
gpu.MODELS["bert"] = none
sys.exit(gpu.main())
"""


def ran(file, *words, script=None, code=0):
    """The JSON that a run of gpu.py writes."""
    words = ["--device", "simt", "--small", "--steps", "1", "--out", str(file), *words]
    program = [str(HERE / "gpu.py")] if script is None else ["-c", script]
    done = subprocess.run(
        [sys.executable, *program, *words], cwd=HERE, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(file.read_text())


def test_models_are_equal_and_timed(simulated, tmp_path):
    record = ran(tmp_path / "record.json", "gpt2", "resnet")
    assert record["device"] == "simulated" and record["steps"] == 1 and record["small"]
    assert [r["model"] for r in record["results"]] == ["gpt2", "resnet"]
    for r in record["results"]:
        assert r["equal"] and len(r["hash"]) == 64 and "first_difference" not in r
        assert min(r["step_ms"], r["plain_step_ms"], r["cpu_step_ms"]) > 0


def test_the_first_operator_that_differs_is_named(simulated, tmp_path):
    (result,) = ran(tmp_path / "record.json", "gpt2", script=WRONG, code=1)["results"]
    assert not result["equal"]
    assert result["first_difference"].startswith("step 0, operator")
    assert "aten.tanh.default" in result["first_difference"]


def test_a_model_that_fails_is_told_of_and_the_others_go_on(simulated, tmp_path):
    record = ran(tmp_path / "record.json", "bert", "gpt2", script=BROKEN, code=1)
    assert record["results"][0]["error"] == "RuntimeError: there is none"
    assert record["results"][1]["equal"]


def test_models_without_time_are_left_out(simulated, tmp_path):
    record = ran(tmp_path / "record.json", "--seconds", "-1", "gpt2", "bert", code=1)
    assert record["left_out"] == ["gpt2", "bert"] and not record["results"]
