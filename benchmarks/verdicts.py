"""Write every goal of the benchmarks with its verdict into benchmarks/README.md.

A benchmark states a goal in one of two ways, and both are read from its committed result: a note
that ends in "met" or "NOT met", or a table with the columns "goal" and "met". A goal that is not
met needs a reason in ``WHY_NOT``, and a reason needs such a goal; otherwise this script exits with
a message.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent
PAGE, RESULTS = ROOT / "README.md", ROOT / "results"
MARKED = re.compile(r"(<!-- verdicts -->\n).*?(<!-- /verdicts -->)", re.DOTALL)
NOTE = re.compile(
    r"(?P<what>.+?): (?P<figure>.+?)[:,]? (?:against a |)(?:goal|target)(?: of|) (?P<goal>[^:,]+)"
    r"[:,] (?P<met>met|NOT met)"
)
FIGURES = ("ms", "share", "setwise / peer", "95 %")  # columns that goals refer to
TIMES = {"ms", "setwise", "median"}  # the columns before the first of these describe a row

# Maps (benchmark, beginning of the goal) to the reason why the goal is not met.
LOOP = "single calls in a loop have become faster; against a loop of NumPy the goal is met"
NOISE = "the goal lies within the range of the repeats"
FIRST = "the first solution has become faster"
WHY_NOT: dict[tuple[str, str], str] = {
    ("batch", "Lovász hinge, Jaccard, loop of setwise"): LOOP,
    ("batch", "B_D, Dice, loop of setwise"): LOOP,
    ("batch", "margin rescaling, Jaccard, loop of setwise"): LOOP,
    ("batch", "slack rescaling, Jaccard, loop of setwise"): LOOP,
    (
        "diverse",
        "six alternatives of 320 x 213 pixels",
    ): "a list takes several cuts on a changing graph, the best labelling one cut",
    (
        "expansion",
        "slowest against gco",
    ): "a synthetic scene with strong smoothing; every photograph is above 3.9",
    (
        "expansion",
        "cases of a higher energy than gco's",
    ): "another local optimum, in one of fifteen; three others are lower",
    (
        "metrics",
        "numbers per pixel and label",
    ): "flows of all labels are kept, up to 256 MiB, which halves the time; without them four to "
    "seven numbers are left: messages, and copies of the unaries",
    ("front_door", "solve_map, 256², 21 labels"): NOISE,
    ("front_door", "grid_edges and solve_map, volume, random, 128³"): NOISE,
    ("front_door", "FlowGraph.grid, 128³, 26 neighbours, all"): NOISE,
    ("front_door", "FlowGraph.grid, 128³, 6 neighbours, all"): NOISE,
    (
        "edits",
        "photograph, 24 megapixels, 8 neighbours, proved at the first window",
    ): "smoothing is strong beside what the colours say, so a border is felt far inside a window",
    ("max_flow", "128^3, 6 neighbours, noisy, PyMaxflow"): NOISE,
    ("max_flow", "1000 x 1000, noisy, first / second solution"): FIRST,
    ("max_flow", "1000 x 1000, more smoothing, first / second solution"): FIRST,
    ("max_flow", "128^3, 6 neighbours, noisy, our list of edges"): NOISE,
    ("max_flow", "128^3, 26 neighbours, more smoothing, our list of edges"): NOISE,
    ("torch_cuda", "hinge 1,000,000, bucket"): "the kernel takes 20 µs, and launches take the rest",
    (
        "marginals",
        "two threads, projection, gap 0.001",
    ): "3 % above; the sweeps take most of the time",
    (
        "wide",
        "lovasz, 1000 x 50, 20, seed 1",
    ): "6 % above; the hardest of the eight fits takes nearly half of their time",
    ("wide", "margin, 200 x 15, 6"): NOISE,
    (
        "learning",
        "two threads",
    ): "met by the fastest runs; in the others two processors were shared with other work",
}


@dataclass(frozen=True)
class Verdict:
    """A goal, the figure that was measured for it, and whether it is met."""

    benchmark: str
    what: str
    figure: str
    goal: str
    met: bool

    def why(self) -> str:
        """Return the reason why the goal is not met, or an empty text if it is."""
        if self.met:
            return ""
        for (benchmark, start), reason in WHY_NOT.items():
            if benchmark == self.benchmark and self.what.startswith(start):
                return reason
        sys.exit(f"{self.benchmark}, {self.what}: not met, and WHY_NOT has no reason for it")


def from_notes(name: str, notes: list[str]) -> list[Verdict]:
    """Return the goals in the sentences under a table."""
    found = filter(None, map(NOTE.match, notes))
    return [Verdict(name, n["what"], n["figure"], n["goal"], n["met"] == "met") for n in found]


def from_table(name: str, table: list[list[str]]) -> list[Verdict]:
    """Return the goals in a table; "3 of 4" in its last column are four goals of one row."""
    head, *rows = table
    if "goal" not in head:
        return []
    goal, met = head.index("goal"), head.index("met")
    figure = next(head.index(column) for column in FIGURES if column in head)
    named = next(k for k, column in enumerate(head) if column in TIMES)
    found = []
    for row in rows:
        if not row[met]:
            continue
        some, _, all_of = row[met].partition(" of ")
        is_met = some == all_of if all_of else row[met] in ("yes", "met")
        shown = row[goal] + (f" ({row[met]})" if all_of else "")
        what = ", ".join(filter(None, row[:named]))
        if "which" in head:
            what += f", beside {row[head.index('which')]}"
        reached = row[figure] + (" ms" if head[figure] == "ms" else "")
        found.append(Verdict(name, what, reached, shown, is_met))
    return found


def verdicts() -> list[Verdict]:
    """Return all goals, by benchmark."""
    found = []
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        found += from_notes(path.stem, result["notes"]) + from_table(path.stem, result["table"])
    return found


def section() -> str:
    """Return the two tables: the goals that are not met with their reasons, and all goals."""
    all_goals = verdicts()
    missed = [v for v in all_goals if not v.met]
    for benchmark, start in WHY_NOT:
        if not any(v.benchmark == benchmark and v.what.startswith(start) for v in missed):
            sys.exit(f"WHY_NOT has a reason for {benchmark}, {start}: no such goal is missed")
    lines = [f"{len(all_goals) - len(missed)} of {len(all_goals)} goals are met.", ""]
    lines += ["### Not met", ""]
    lines += ["| benchmark | what | figure | goal | why not |", "|---|---|---|---|---|"]
    lines += [f"| `{v.benchmark}` | {v.what} | {v.figure} | {v.goal} | {v.why()} |" for v in missed]
    lines += ["", "### All goals", ""]
    lines += ["| benchmark | what | figure | goal | met |", "|---|---|---|---|---|"]
    lines += [
        f"| `{v.benchmark}` | {v.what} | {v.figure} | {v.goal} | {'yes' if v.met else '**no**'} |"
        for v in all_goals
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="print the tables, write nothing")
    args = parser.parse_args()
    filled = MARKED.sub(lambda found: found[1] + section() + found[2], PAGE.read_text("utf-8"))
    if args.quick:
        print(filled)
    else:
        PAGE.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
