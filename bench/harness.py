"""Shared by the benchmarks in Python: PyTorch's threads, clocks, ways that are timed in turn,
processes that answer line by line, memory of processes, and tables in Markdown."""

import os
import statistics
import subprocess
import sys
import time


def torch_with(threads):
    """PyTorch with so many threads, which sleep while another way has its turn. Before any import of it."""
    os.environ.update(OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="0",
                      KMP_BLOCKTIME="0")
    try:
        import torch
    except ImportError:
        sys.exit("bench: this Python has no PyTorch")
    torch.set_num_threads(threads)
    return torch


def clock_of(threads):
    """CPU time where one thread works, which a busy machine disturbs less; else the wall's."""
    return time.process_time if threads == 1 else time.perf_counter


def seconds_of(run, calls, clock=time.perf_counter):
    """Of one call, the mean of so many."""
    start = clock()
    for _ in range(calls):
        run()
    return (clock() - start) / calls


def in_turn(rounds, *ways, warm_up=1):
    """Calls every way once in every round; a list for each of what it returned, without the first rounds."""
    found = [[] for _ in ways]
    for number in range(warm_up + rounds):
        for way, results in zip(ways, found):
            result = way()
            if number >= warm_up:
                results.append(result)
    return found


median = statistics.median


def answer(hello, reply, to=None):
    """The peer's side: a line for each line of standard input, `hello` for "hello"."""
    for line in sys.stdin:
        line = line.rstrip("\n")
        said = hello if line == "hello" else reply(line)
        print(*(said if isinstance(said, tuple) else [said]), file=to, flush=True)


class Peer:
    """A process that says one line when it is ready, and one for each line that it is told."""

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
    """Of /proc/PID/status, as VmHWM, the most that was resident; zeros once the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as f:
            found = dict(line.split(":", 1) for line in f)
        return [int(found[name].split()[0]) for name in names]
    except (OSError, KeyError):
        return [0] * len(names)


def watch(process, look, pause):
    """Calls `look` again and again while the process runs."""
    while process.poll() is None:
        look()
        time.sleep(pause)


def head(*titles, left=1):
    """The first two lines of a table; so many columns are words, the others numbers."""
    print(f"| {' | '.join(titles)} |")
    print(f"| {' | '.join(['---'] * left + ['---:'] * (len(titles) - left))} |", flush=True)


def row(*cells):
    print(f"| {' | '.join(cells)} |", flush=True)
