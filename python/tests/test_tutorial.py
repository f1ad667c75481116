"""Runs the commands of docs/tutorials/3-pytorch.md, which must print what it says."""

import os
import subprocess
import sys


def test_the_tutorial_of_pytorch(command, top, tmp_path):
    lines = (top / "docs/tutorials/3-pytorch.md").read_text().splitlines()
    commands = "\n".join(line[4:] for line in lines if line.startswith("    ") or not line)
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "verde").symlink_to(command)
    (binaries / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (binaries / "python3").chmod(0o755)
    env = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "VERDE": command}
    script = f"set -e; trap 'set +e; kill $(jobs -p) 2> /dev/null; wait' EXIT\n{commands}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "exit code 3" in said and "CONVICTED" in said and "verified" in said, said
    assert "# train.py:" in said and "losses [" in said, said
    value = float(said.split("a row of ones gives ")[1].split()[0])
    assert abs(value - 8) < 2, said
