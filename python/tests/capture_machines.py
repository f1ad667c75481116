"""Programs of some models of the zoo on other machines: NEON, the CUDA kernels, AVX-512.

Usage: capture_machines.py RESULTS PORTABLE LIBRARY [NAME...]

PORTABLE is tests/portable for aarch64, which qemu-aarch64 runs; LIBRARY is librepops_cuda.so.1, as
`make simt` builds it for this CPU. Each must compute the states of the AVX2 run. Prints a line
for each model, and writes RESULTS/NAME.json; models with such a file are not run again."""

import json
import sys
import tempfile
from pathlib import Path

from capture_zoo import capture, ran, said

NAMES = ["albert", "checkpointed", "clip", "dqn", "gnn_index_add", "gru", "lora", "nanogpt", "t5"]
NAMES += ["vit_of_torchvision", "whisper", "chosen_convnext_large"]


def states_of(run):
    return [s["state"] for s in json.loads((run / "run.json").read_text())["states"]]


def machines(name, portable, library, place):
    """The machines that compute the same states as AVX2."""
    job, tables, _ = capture(name, place / "job")
    tables.close()
    root = ran(job.folder, place / "avx2", "--backend", "avx2")
    same = {}
    if "avx512f" in Path("/proc/cpuinfo").read_text():
        same["AVX-512"] = ran(job.folder, place / "avx512", "--backend", "avx512") == root
    lines = said("qemu-aarch64", portable, job.folder, REPOPS_CPU="neon").splitlines()
    found = [line.split()[2] for line in lines if line.startswith("state ")]
    same["NEON"] = lines[0].startswith("neon ") and found == states_of(place / "avx2")
    shim = {"REPOPS_CUDA_LIBRARY": library}
    same["SIMT"] = ran(job.folder, place / "simt", "--backend", "cuda:0", **shim) == root
    return same


def main():
    results, portable, library, *names = sys.argv[1:]
    Path(results).mkdir(parents=True, exist_ok=True)
    wrong = 0
    for name in names or NAMES:
        file = Path(results) / f"{name}.json"
        if not file.exists():
            with tempfile.TemporaryDirectory(prefix="zoo.") as place:
                same = machines(name, portable, library, Path(place))
            file.write_text(json.dumps(same) + "\n")
        same = json.loads(file.read_text())
        wrong += not all(same.values())
        print(name, *[f"{k}: {'equal' if v else 'DIFFERENT'}" for k, v in same.items()], flush=True)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
