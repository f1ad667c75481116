"""The table of losses."""

import statistics

SHOWN = 6  # columns of single steps
HEAD = """# Losses of one job with other products and storage

`make bench-curves` made this from the files `NAME.json`, which have every loss and the roots of the runs; the jobs are in `bench/curves`.
The loss is in nats a token or image. "Distance" is |loss - loss of fp32| at the same step, as a mean over the last tenth of the steps.
`nudged` is fp32 with a learning rate one unit larger in its last place, the smallest change that a run can have. `seed3` is fp32 with
that seed, and `bf16-seed3` is bf16 with it, which is compared with `seed3`. `fixed8_fixed16_fixed16` is fixed8 forward, fixed16 for gradients
of inputs and of weights. `pytorch` is PyTorch in float32 with the same first weights and data, `pytorch_bf16` the same under autocast.

"""


def is_seed(way):
    return way == "fp32" or way.startswith("seed")


def end(losses):
    """Returns the mean over the last tenth of the steps."""
    return statistics.fmean(losses[-(len(losses) // 10):])


def apart(losses, others):
    """Returns the mean distance from another run's losses, step by step, over the last tenth."""
    return end([abs(a - b) for a, b in zip(losses, others)])


def shown_steps(count):
    return [1, *(count * i // (SHOWN - 1) for i in range(1, SHOWN))]


def fp32_of(way, results):
    """Returns the losses of fp32 with the same seed, or None."""
    _, _, seed = way.partition("-")
    return results.get(seed or "fp32", {}).get("losses")


def row(way, results):
    losses, fp32 = results[way]["losses"], results["fp32"]["losses"] if is_seed(way) else fp32_of(way, results)
    cells = [way, *(f"{losses[s - 1]:.6f}" for s in shown_steps(len(losses))), f"{end(losses):.6f}"]
    cells += [f"{end(losses) - end(fp32):+.6f}" if way != "fp32" else "", f"{apart(losses, fp32):.6f}" if not is_seed(way) else ""]
    return "| " + " | ".join(cells) + " |"


def differences(results):
    """Returns for each way, by seed, the mean loss minus that of fp32, and the mean distance."""
    found = {}
    for way, result in results.items():
        fp32 = None if is_seed(way) else fp32_of(way, results)
        if fp32:
            found.setdefault(way.partition("-")[0], []).append((end(result["losses"]) - end(fp32), apart(result["losses"], fp32)))
    return {way: pairs for way, pairs in found.items() if len(pairs) > 1}


def by_seeds(results):
    """Describes how far each way is from fp32, over the seeds that both have."""
    found = differences(results)
    if not found:
        return ""
    lines = ["\nOver the seeds that both have, the mean of the last tenth less that of fp32 with the same seed:\n",
             "|  | seeds | mean difference | standard deviation | from | to | mean distance |", "| --- |" + " ---: |" * 6]
    for way, pairs in found.items():
        less, far = [p[0] for p in pairs], statistics.fmean(p[1] for p in pairs)
        lines.append(f"| {way} | {len(less)} | {statistics.fmean(less):+.6f} | {statistics.stdev(less):.6f} | {min(less):+.6f} "
                     f"| {max(less):+.6f} | {far:.6f} |")
    return "\n".join(lines) + "\n"


def noise(results):
    """Describes the spread of the fp32 runs with other seeds, in a sentence."""
    ends = [end(r["losses"]) for way, r in results.items() if is_seed(way)]
    if len(ends) < 2:
        return ""
    return (f"\nThe means of {len(ends)} runs of fp32 with other seeds have a standard deviation of {statistics.stdev(ends):.6f} and lie within "
            f"{max(ends) - min(ends):.6f}.\n")


def section(name, results):
    fp32 = results["fp32"]["losses"]
    steps = shown_steps(len(fp32))
    head = ["", *(f"step {s}" for s in steps), f"mean of the last {len(fp32) // 10}", "less that of fp32", "distance"]
    lines = [f"## {name}, {len(fp32)} steps\n", "| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    lines += [row(way, results) for way in results if fp32_of(way, results)]
    return "\n".join(lines) + "\n" + noise(results) + by_seeds(results)


def write(path, all_results):
    with open(path, "w") as f:
        f.write(HEAD + "\n".join(section(name, results) for name, results in all_results.items() if "fp32" in results))
