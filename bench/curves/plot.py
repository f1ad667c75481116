"""Draws losses as SVG for light and dark pages: the losses above, and below them the distance of each way from fp32."""

import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 64, 16, 28, 40
POINTS = 60  # points of a line, each the mean of the steps around it
TICKS = 6
LEAST = 1e-7  # smaller distances are drawn as this
COLOURS = {"fp32": ("#111", "#eee"), "fixed24": ("#0a66c2", "#6cb4ff"), "fixed16": ("#c22", "#ff7b72"),
           "fixed8": ("#92b", "#c9f"), "fixed8_fixed16_fixed16": ("#e5a", "#f9c"), "fixed8_fp32_fp32": ("#088", "#4cc"),
           "bf16": ("#b60", "#fa4"), "pytorch": ("#555", "#aaa"), "pytorch_bf16": ("#770", "#cc4"),
           "nudged": ("#183", "#5c7"), "seed": ("#bbb", "#555")}
WORDS = {"nudged": "fp32, rate one unit in the last place larger", "seed": "fp32, other seeds", "bf16": "bf16 storage",
         "fixed8_fixed16_fixed16": "fixed8, gradients by fixed16", "fixed8_fp32_fp32": "fixed8, gradients by fp32",
         "pytorch": "PyTorch, float32", "pytorch_bf16": "PyTorch, autocast to bf16"}


def kind(way):
    """Returns the kind that gives a way its colour: `bf16-seed3` is drawn as bf16."""
    return "seed" if way.startswith("seed") else way.partition("-")[0]


def means(values):
    """Returns POINTS pairs of a step and the mean of the values around it."""
    each = max(1, len(values) // POINTS)
    parts = [(i, values[i:i + each]) for i in range(0, len(values), each)]
    return [(i + (len(part) + 1) / 2, sum(part) / len(part)) for i, part in parts]


def tick_step(span):
    unit = 10 ** math.floor(math.log10(span / TICKS))
    return next(unit * m for m in (1, 2, 5, 10) if span / TICKS <= unit * m)


class Panel:
    def __init__(self, title, top, steps, lines, log):
        self.title, self.top, self.last, self.log = title, top, steps, log
        self.lines = [(way, [(s, self.scaled(v)) for s, v in points]) for way, points in lines]
        values = [v for _, points in self.lines for _, v in points]
        room = (max(values) - min(values)) / 20 or 1
        self.low, self.high = min(values) - room, max(values) + room

    def scaled(self, value):
        return math.log10(max(value, LEAST)) if self.log else value

    def x(self, step):
        return LEFT + step / self.last * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        return self.top + TOP + (self.high - value) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)

    def axes(self):
        each = 1 if self.log else tick_step(self.high - self.low)
        yield f'<text x="{LEFT}" y="{self.top + 18}">{self.title}</text>'
        for i in range(math.ceil(self.low / each), math.floor(self.high / each) + 1):
            y, said = self.y(i * each), f"1e{i}" if self.log else f"{i * each:.6g}"
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{said}</text>'
        each = max(1, tick_step(self.last))
        for i in range(math.floor(self.last / each) + 1):
            yield f'<text x="{self.x(i * each):.1f}" y="{self.top + HEIGHT - BOTTOM + 18}" text-anchor="middle">{i * each:.0f}</text>'

    def curves(self):
        for way, points in self.lines:
            path = "L".join(f"{self.x(s):.1f} {self.y(v):.1f}" for s, v in points)
            yield f'<path class="line {kind(way)}" d="M{path}"/>'


def legend(kinds, top):
    for i, name in enumerate(kinds):
        x, y = LEFT + 330 * (i % 2), top + 16 * (i // 2)
        yield f'<path class="line {name}" d="M{x} {y - 4}h24"/><text x="{x + 32}" y="{y}">{WORDS.get(name, name)}</text>'


def style():
    rules = [":root{color-scheme:light dark;max-width:100%;height:auto}rect{fill:#fff}text{fill:#333;font:12px sans-serif}path{fill:none}.grid{stroke:#ddd}",
             ".line{stroke-width:1.5}", *(f".{k}{{stroke:{light}}}" for k, (light, _) in COLOURS.items()),
             "@media(prefers-color-scheme:dark){rect{fill:#16181c}text{fill:#ccc}.grid{stroke:#3a3d42}",
             *(f".{k}{{stroke:{dark}}}" for k, (_, dark) in COLOURS.items()), "}",
             "@media(max-width:560px){text{font-size:14px}}"]
    return "<style>" + "".join(rules) + "</style>"


def with_bases(ways, results):
    """Yields each way but fp32, with the fp32 losses that it is compared with: those of the same seed, if it
    has one."""
    for way in ways:
        _, _, seed = way.partition("-")
        base = results.get(seed or "fp32")
        if base and way != "fp32":
            yield way, base["losses"]


def write(path, name, results):
    # Important lines are drawn last, on top of the others.
    ways = sorted(results, key=lambda way: list(COLOURS)[::-1].index(kind(way)))
    fp32 = results["fp32"]["losses"]
    losses = [(way, means(results[way]["losses"])) for way in ways if "-" not in way]
    far = [(way, means([abs(a - b) for a, b in zip(results[way]["losses"], base)])) for way, base in with_bases(ways, results)]
    panels = [Panel(f"{name}: loss by step", 0, len(fp32), losses, False)]
    if far:
        panels.append(Panel("distance of the loss from that of fp32 at the same step", HEIGHT, len(fp32), far, True))
    kinds = [k for k in COLOURS if any(kind(way) == k for way in ways)]
    height = HEIGHT * len(panels) + 16 * ((len(kinds) + 1) // 2) + 8
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
           f'aria-label="losses of {name}">', style(), f'<rect width="{WIDTH}" height="{height}"/>']
    for panel in panels:
        out += [*panel.axes(), *panel.curves()]
    out += [*legend(kinds, HEIGHT * len(panels) + 8), "</svg>"]
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")
