"""Shared by the benchmarks in Python: PyTorch's threads, clocks, ways (alternatives that are timed
in turn), processes that answer line by line, memory of processes, and tables in Markdown."""

import os
import statistics
import subprocess
import sys
import time


def torch_with(threads):
    """Imports PyTorch with so many threads, which sleep while another way has its turn. Call it before any
    other import of torch."""
    os.environ.update(OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="0",
                      KMP_BLOCKTIME="0")
    try:
        import torch
    except ImportError:
        sys.exit("bench: this Python has no PyTorch")
    torch.set_num_threads(threads)
    return torch


def clock_of(threads):
    """Returns CPU time for one thread, which a busy machine disturbs less; else wall-clock time."""
    return time.process_time if threads == 1 else time.perf_counter


def seconds_of(run, calls, clock=time.perf_counter):
    """Returns the seconds of one call, the mean of `calls` calls."""
    start = clock()
    for _ in range(calls):
        run()
    return (clock() - start) / calls


def in_turn(rounds, *ways, warm_up=1):
    """Calls every way once in every round. Returns a list of results for each way, without those of the
    warm-up rounds."""
    found = [[] for _ in ways]
    for number in range(warm_up + rounds):
        for way, results in zip(ways, found):
            result = way()
            if number >= warm_up:
                results.append(result)
    return found


median = statistics.median


def answer(hello, reply, to=None):
    """Runs the peer's side: answers each line of standard input by a line, and "hello" by
    `hello`."""
    for line in sys.stdin:
        line = line.rstrip("\n")
        said = hello if line == "hello" else reply(line)
        print(*(said if isinstance(said, tuple) else [said]), file=to, flush=True)


class Peer:
    """A process that prints one line when it is ready, and one for each line that it gets."""

    def __init__(self, command, **more):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)
        self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"bench: {' '.join(map(str, self.process.args))} ended")
        return line.split()

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit(f"bench: {' '.join(map(str, self.process.args))} failed")


def kilobytes(pid, *names):
    """Returns values of /proc/PID/status, such as VmHWM, the peak resident memory; zeros once the
    process is gone."""
    try:
        with open(f"/proc/{pid}/status") as f:
            found = dict(line.split(":", 1) for line in f)
        return [int(found[name].split()[0]) for name in names]
    except (OSError, KeyError):
        return [0] * len(names)


def watch(process, look, pause):
    """Calls `look` repeatedly while the process runs."""
    while process.poll() is None:
        look()
        time.sleep(pause)


def head(*titles, left=1):
    """Prints the first two lines of a table; the first `left` columns are text, the others
    numbers."""
    print(f"| {' | '.join(titles)} |")
    print(f"| {' | '.join(['---'] * left + ['---:'] * (len(titles) - left))} |", flush=True)


def row(*cells):
    print(f"| {' | '.join(cells)} |", flush=True)
