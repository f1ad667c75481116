"""Models that people train, unmodified: no leftover, and one hash in two settings.

By default: models, losses, activations and optimizers of torch, and a few others. REPOPS_ZOO=all:
every model whose package is installed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import zoo
from capture_page import RECORD, results, worse

HERE = Path(__file__).parent
FEW = "mistral t5 modernbert whisper clip wav2vec2 mixtral generate fnet".split()
# torch's instruction set, the library's, and threads; "" is this machine's best.
SETTINGS = [("default", "scalar", "1"), ("", "", "3")]


def names():
    every = zoo.installed() + ["optimizer_" + n for n in zoo.OPTIMIZERS]
    if os.environ.get("REPOPS_ZOO") == "all":
        return every
    return [n for n in every if n in FEW or zoo.MODELS.get(n, ("torch",))[0] == "torch"]


def start(setting):
    chosen = {k: v for k, v in zip(("ATEN_CPU_CAPABILITY", "REPOPS_CPU"), setting) if v}
    environment = {
        **{k: v for k, v in os.environ.items() if k not in ("ATEN_CPU_CAPABILITY", "REPOPS_CPU")},
        **chosen,
        "TRAIN_THREADS": setting[2],
        "OMP_WAIT_POLICY": "passive",
        "HF_HUB_OFFLINE": "1",
    }
    words = [sys.executable, "-m", "zoo", *names()]
    return subprocess.Popen(
        words, cwd=HERE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_models_have_no_leftovers_and_the_same_hash_in_two_settings():
    runs = [start(s) for s in SETTINGS]
    results = []
    for run in runs:
        out, err = run.communicate()
        assert run.returncode == 0, err[-3000:]
        results.append(out.splitlines())
    assert [line.split()[0] for line in results[0]] == names()
    assert results[0] == results[1]


CAPTURED = "gru checkpointed dqn gnn_index_add gnn_scatter gnn_sparse kan_sin nanogpt".split()
REFUSED = ["generate", "wav2vec2"]


def test_captures_are_as_the_list_says(command, tmp_path):
    """REPOPS_ZOO=all captures all models, as docs/zoo.md lists them. Other versions may give other
    programs, but what is captured must still be captured."""
    names = [] if os.environ.get("REPOPS_ZOO") == "all" else CAPTURED + REFUSED
    words = [sys.executable, HERE / "capture_zoo.py", tmp_path, *names]
    done = subprocess.run(words, cwd=HERE, capture_output=True, text=True)
    found = results(tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    listed = json.loads(RECORD.read_text())
    assert list(worse(listed, found)) == []
    for name in REFUSED:
        reason = listed["models"][name]["reason"].split(":")[0]  # the file; lines move
        assert found[name]["result"] == "refused" and reason in found[name]["reasons"][0]
    for name in CAPTURED:
        assert found[name]["result"] == "equal" and len(found[name]["settings"]) == 4
