"""Compares vd_estimate_seconds of a step with the time that it takes, for programs of one operator
each (estimates_programs.py) and for models.

Usage: estimates.py PROGRAM [WORD] [JOB...]. PROGRAM is build/bench/estimates. With a nonempty WORD only
programs with that word in their names are run."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import harness
from estimates_programs import CASES, write


def compared(program: str, job: Path) -> float | None:
    done = subprocess.run([program, str(job)], check=False, capture_output=True, text=True)
    print(done.stdout + done.stderr, end="", flush=True)
    return float(done.stdout.split("|")[-2]) if done.returncode == 0 else None


def main() -> None:
    program, word, *jobs = [*sys.argv[1:], ""] if len(sys.argv) == 2 else sys.argv[1:]
    harness.head("", "estimate, ms", "truth, ms", "ratio")
    ratios = []
    with tempfile.TemporaryDirectory() as scratch:
        for case in CASES:
            if word in case.name:
                folder = Path(scratch) / case.name
                write(case, folder)
                ratios.append(compared(program, folder))
                shutil.rmtree(folder)
    ratios += [compared(program, Path(job)) for job in jobs]
    known = [r for r in ratios if r is not None]
    beyond = sum(not 1 / 3 <= r <= 3 for r in known)
    print(f"\n{len(known)} ratios, from {min(known):.2f} to {max(known):.2f}; {beyond} beyond 3.")


if __name__ == "__main__":
    main()
