"""Shows where a step's time goes on a GPU, by kernel: reads ncu's output, prints sums.

ncu --clock-control none --profile-from-start off --metrics gpu__time_duration.sum --csv build/gpu/bench/cuda --once --only training \
    | python3 bench/cuda_kernels.py
"""

import csv
import re
import sys

UNITS = {"nsecond": 1e-6, "ns": 1e-6, "usecond": 1e-3, "us": 1e-3, "msecond": 1.0, "ms": 1.0, "second": 1e3, "s": 1e3}


def short(name):
    name = re.sub(r"\(anonymous namespace\)::|_INTERNAL_\w+?_cu_[0-9a-f]{8}\w*::", "", name)
    return re.sub(r"\s+", " ", name)[:110]


def table(lines):
    lines = [line for line in lines if line.startswith('"')]  # other lines are the benchmark's own output
    kernels = {}
    for row in csv.DictReader(lines):
        if row.get("Metric Name") != "gpu__time_duration.sum":
            continue
        ms = float(row["Metric Value"].replace(",", "")) * UNITS[row["Metric Unit"]]
        count, total = kernels.get(row["Kernel Name"], (0, 0.0))
        kernels[row["Kernel Name"]] = count + 1, total + ms
    return kernels


kernels = table(sys.stdin)
everything = sum(total for _, total in kernels.values()) or 1.0
print(f"{'launches':>8} {'ms':>9} {'share':>6}  kernel")
for name, (count, total) in sorted(kernels.items(), key=lambda item: -item[1][1]):
    print(f"{count:8} {total:9.3f} {100 * total / everything:5.1f}%  {short(name)}")
print(f"{sum(count for count, _ in kernels.values()):8} {everything:9.3f} 100.0%  all")
