"""The figures and the picture of README and of the home page, from a run of the demo.

python benchmarks/pages/front.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from trimtab.series import Floats
from trimtab.sim.grid import DAY_STEPS, HOUR_STEPS
from trimtab.sim.sliding_windows import trailing_mean
from trimtab.tune.case import Outcome
from trimtab.tune.demo_fleet import demo_fleet
from trimtab.tune.demo_play import DemoResult, play

DAY, FIRST_HOUR, HOURS = 1, 8, 4  # Tuesday of the scored week, 08:00 to 12:00
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 860, 290, 34, 48, 30, 34
PANEL = (WIDTH - LEFT - GAP - 30) / 2
EVERY = 4  # steps from point to point: a minute
LEGEND = "load (grey) and what ready pods serve within the service level (blue), in pods; overload is red"
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #3b4252; } .title { font-weight: 600; font-size: 14px; }
  .card { fill: #ffffff; } .grid { stroke: #e5e9f0; } .load { stroke: #4c566a; } .capacity { stroke: #1565c0; }
  .over { fill: #d32f2f; } .line { fill: none; stroke-width: 2; }
  @media (prefers-color-scheme: dark) { text { fill: #d8dee9; } .card { fill: #161b22; } .grid { stroke: #30363d; }
    .load { stroke: #9aa4b2; } .capacity { stroke: #58a6ff; } .over { fill: #f85149; } }
"""


ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs/pictures/ramp.svg"
PAGES = {"README.md": "docs/", "docs/index.md": ""}
FIRST, LAST = "<!-- figures: written by benchmarks/pages/front.py -->", "<!-- end of figures -->"


def main() -> None:
    results = [play(workload) for workload in demo_fleet()]
    PICTURE.write_text(picture(max(results, key=lambda result: result.workload.pods.startup_s)))
    for page, folder in PAGES.items():
        text = (ROOT / page).read_text()
        before, rest = text.split(FIRST)
        (ROOT / page).write_text(f"{before}{FIRST}\n\n{figures(results, folder)}\n\n{rest[rest.index(LAST) :]}")


def figures(results: Sequence[DemoResult], folder: str) -> str:
    """Return a table of the demo's results: overload, pod hours and memory, before and with trimtab."""
    sides = [[result.today for result in results], [result.ours for result in results]]
    overload = [fmean(outcome.figures.violations for outcome in side) for side in sides]
    hours = [sum(outcome.pod_hours for outcome in side) for side in sides]
    memory = [
        sum(result.memory_gib[side] * sides[side][place].pod_hours for place, result in enumerate(results))
        for side in (0, 1)
    ]
    return "\n".join(
        (
            "| one week of the four services of the demo | as they are today | with trimtab |",
            "|---|---|---|",
            f"| load that met overloaded pods, or mail that came late | {overload[0]:.1f} % | {overload[1]:.1f} % |",
            f"| pod hours | {hours[0]:,.0f} | {hours[1]:,.0f} |",
            f"| reserved memory, GiB hours | {memory[0]:,.0f} | {memory[1]:,.0f} |",
            "",
            f"The demo is simulated. [The benchmark]({folder}benchmark.md) replays 40 recorded loads.",
        )
    )


def picture(result: DemoResult) -> str:
    level = result.workload.pods.level_share
    first = DAY * DAY_STEPS + FIRST_HOUR * HOUR_STEPS
    part = slice(first, first + HOURS * HOUR_STEPS)
    load = trailing_mean(result.ours.run.load, EVERY)[part][::EVERY] / level
    panels = [
        (f"HPA: {_violations(result.today)}", result.today),
        (f"trimtab: {_violations(result.ours)}", result.ours),
    ]
    top = 1.08 * max(float(_capacity(outcome, level)[part].max()) for _, outcome in panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>One morning of a service whose pods take ten minutes to start</title><style>{STYLE}</style>",
        f'<rect class="card" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        f'<text x="12" y="20">{LEGEND}</text>',
    ]
    for number, (title, outcome) in enumerate(panels):
        left = LEFT + number * (PANEL + GAP)
        capacity = _capacity(outcome, level)[part][::EVERY] / level
        parts += _panel(left, title, load, capacity, top / level)
    return "\n".join([*parts, "</svg>", ""])


def _capacity(outcome: Outcome, level: float) -> Floats:
    """What ready pods serve within the service level; a bridge shows in what is billed for them."""
    run = outcome.run
    return np.asarray((run.ready + np.maximum(0.0, run.billed - run.replicas)) * level, dtype=np.float64)


def _violations(outcome: Outcome) -> str:
    return f"{outcome.figures.violations:.2f} % of the load overloaded"


def _panel(left: float, title: str, load: Floats, capacity: Floats, top: float) -> Iterator[str]:
    floor, height = HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP
    xs = left + np.arange(len(load)) * PANEL / (len(load) - 1)

    def y(values: Floats) -> Floats:
        found: Floats = floor - values / top * height
        return found

    yield f'<text class="title" x="{left:.0f}" y="{TOP - 8}">{title}</text>'
    for hour in range(HOURS + 1):
        at = left + hour * PANEL / HOURS
        yield f'<line class="grid" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{floor}"/>'
        yield f'<text x="{at - 15:.1f}" y="{floor + 18}">{FIRST_HOUR + hour:02d}:00</text>'
    for pods in range(0, int(top) + 1, 10):
        yield f'<text x="{left - 22:.0f}" y="{floor - pods / top * height + 4:.1f}">{pods}</text>'
    yield f'<path class="over" d="{_shaded(xs, y(np.maximum(load, capacity)), y(capacity))}"/>'
    yield f'<path class="line load" d="{_line(xs, y(load))}"/>'
    yield f'<path class="line capacity" d="{_line(xs, y(capacity))}"/>'


def _line(xs: Sequence[float] | Floats, ys: Sequence[float] | Floats) -> str:
    return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))


def _shaded(xs: Floats, upper: Floats, lower: Floats) -> str:
    return f"{_line(xs, upper)} L{_line(xs[::-1], lower[::-1])[1:]} Z"


if __name__ == "__main__":
    main()
