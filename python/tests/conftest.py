"""Functions and fixtures that all tests share."""

import os
import subprocess
import time
from pathlib import Path

import pytest

# The repository, with whose sources some tests compare; the tested package is the installed one.
TOP = Path(os.environ.get("REPOPS_TOP", Path(__file__).resolve().parents[2]))


def called(*words, code=0):
    """The standard output of a program, which must exit with this code."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout


def settle(command, job, place, folders):
    """The verdict of a dispute between runs, which must convict."""
    servers, urls = [], []
    try:
        for folder in folders:
            file = place / f"{len(urls)}.url"
            with open(file, "w") as out:
                servers.append(
                    subprocess.Popen(
                        [command, "serve", str(folder)], stdout=out, stderr=subprocess.DEVNULL
                    )
                )
            for _ in range(300):
                if file.read_text().endswith("\n"):
                    break
                time.sleep(0.1)
            urls += ["--provider", file.read_text().split()[0]]
        keys = ["--key", place / "keys"]
        called(command, "arbitrate", job, *urls, "--verdict", place / "v.json", *keys, code=3)
    finally:
        for server in servers:
            server.terminate()
            server.wait()
    return place / "v.json"


def delegated(command, job, place):
    """The folder of a job's result that two daemons have computed, with every byte checked."""
    called(command, "keygen", place / "client")
    key = (place / "client" / "key.pub").read_text().strip()
    daemons, urls = [], []
    try:
        for name in ("a", "b"):
            words = [command, "provide", "--dir", str(place / name)]
            words += ["--listen", "127.0.0.1:0", "--client", key, "--threads", "1"]
            daemon = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            daemons.append(daemon)
            urls += ["--provider", daemon.stdout.readline().decode().strip()]
        words = ["--key", place / "client", "--out", place / "result", *urls]
        called(command, "delegate", job, *words)
    finally:
        for daemon in daemons:
            daemon.terminate()
            daemon.wait()
            daemon.stdout.close()
    return place / "result"


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


def pytest_collection_modifyitems(items):
    """PyTorch counts its devices in the first backward pass, so tests that open one come first."""
    items.sort(key=lambda item: "device" not in item.fixturenames)


@pytest.fixture
def device():
    """The device "simt", computed by the simulator of CUDA's threads; REPOPS_CUDA_LIBRARY is its
    library (`make simt`). REPOPS_TEST_DEVICE=cuda:0 tests a CUDA device instead."""
    import torch

    if os.environ.get("REPOPS_TEST_DEVICE"):
        return torch.device(os.environ["REPOPS_TEST_DEVICE"])
    if "simt" not in os.environ.get("REPOPS_CUDA_LIBRARY", ""):
        pytest.skip("no simulator of CUDA's threads")
    import simt

    found = simt.open_device()
    simt.theirs.clear()
    simt.waits.clear()
    return found


@pytest.fixture
def simulated(device):
    """The module of the device "simt", which counts the calls of PyTorch's kernels."""
    if device.type != "simt":
        pytest.skip("it is of the simulated device")
    import simt

    return simt
