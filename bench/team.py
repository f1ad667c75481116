"""Times a training step of GPT-2 124M by teams of processes, beside one process.

    team.py WORKER [--rounds N] [--sequence T] [--mpirun CMD]

Each way has its processes, which are idle while another way has its turn; a round runs a step of each. Prints the least and the median
seconds, their ratio to those of one process, the peak memory of each process, and the bytes that a process sends in a step.
"""
import argparse
import os

import harness

MODEL = ["12", "12", "768"]  # layers, heads, channels
BATCH = 8
PARAMETERS = 124439808
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


class Way(harness.Peer):
    def __init__(self, options, processes, micro, threads):
        self.name = "%d x %d" % (processes, threads)
        self.processes, self.steps = processes, 0
        command = [options.worker] + MODEL + [str(BATCH), str(micro), str(options.sequence), str(threads)]
        if processes > 1:
            command = options.mpirun.split() + ["-n", str(processes)] + command
        super().__init__(command, env=ENVIRONMENT)

    def step(self):
        self.steps += 1
        return float(self.ask("step")[0])

    def most(self):
        answer = self.ask("most")
        return [float(x) for x in answer[0::2]], [int(x) / self.steps for x in answer[1::2]]


def say_speed(ways, times):
    print("processes x threads | s, least | s, middle | speed of 1 x 1, least | middle")
    one = times[0]
    for way, mine in zip(ways, times):
        print("%19s | %8.3f | %9.3f | %21.2f | %6.2f" % (
            way.name, min(mine), harness.median(mine), min(one) / min(mine), harness.median(one) / harness.median(mine)))


def say_most(way):
    memory, sent = way.most()
    ring = 2 * (way.processes - 1) / way.processes * 4 * PARAMETERS
    print("%19s | MB, each: %s" % (way.name, ", ".join("%.0f" % x for x in memory)))
    if way.processes > 1:
        print("%19s | sent, MB a step, each: %s; mean %.1f, a ring's %.1f" % (
            "", ", ".join("%.1f" % (x / 1e6) for x in sent), sum(sent) / len(sent) / 1e6, ring / 1e6))


def time_ways(options):
    ways = [Way(options, 1, 2, 1), Way(options, 2, 2, 1), Way(options, 1, 2, 2)]
    say_speed(ways, harness.in_turn(options.rounds, *(way.step for way in ways)))
    for way in ways:
        say_most(way)
        way.close()


def weigh_ways(options):
    for processes in 1, 2, 4:
        way = Way(options, processes, 4, 1)
        for _ in range(2):
            way.step()
        say_most(way)
        way.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("worker")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sequence", type=int, default=64)
    parser.add_argument("--mpirun", default="mpirun --oversubscribe --bind-to none")
    options = parser.parse_args()
    print("GPT-2 124M, batch %d, sequence %d, 2 micro-batches" % (BATCH, options.sequence))
    time_ways(options)
    print("4 micro-batches")
    weigh_ways(options)


if __name__ == "__main__":
    main()
