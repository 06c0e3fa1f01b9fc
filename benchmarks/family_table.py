"""The table and the plot of benchmarks/families.py, and what became slower than it was."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any, TextIO

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

PARTS = ("products", "elementwise", "memory", "python")
COLUMNS = ("family", "way", "runs", "milliseconds", "ratio", "least", "greatest", "share_of_peak", "megabytes", *PARTS)
BEGIN, END = "<!-- written by benchmarks/families.py --keep -->", "<!-- end -->"
TOLERATED = 0.9  # of the kept ratio


def write(rows: list[dict[str, Any]], stream: TextIO) -> None:
    """As CSV."""
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: f"{row[key]:.4g}" if isinstance(row[key], float) else row[key] for key in COLUMNS} for row in rows)


def line(row: dict[str, Any]) -> str:
    """A row for people."""
    parts = " ".join(f"{name} {row[name]:.0%}" for name in PARTS)
    ratio = f"{row['ratio']:.2f} ({row['least']:.2f} to {row['greatest']:.2f})"
    own = f"{row['family']:30} {row['way']:6} {row['runs']:3} {row['milliseconds']:9.2f} ms {ratio:22}"
    peak = "   -" if math.isnan(row["share_of_peak"]) else f"{row['share_of_peak']:4.0%}"
    return f"{own} {peak} of peak {row['megabytes']:5.0f} MB  {parts}"


def page(rows: list[dict[str, Any]]) -> str:
    """The table of docs/performance.md: a line for each family."""
    lines = [
        "| family | plain, ms | a run alone | packs | share of peak | at the peak | MB | products, elementwise, memory, Python |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for family in dict.fromkeys(row["family"] for row in rows):
        plain, *packed = [row for row in rows if row["family"] == family]
        alone, best = packed[0], packed[-1]
        between = " ".join(
            f"{row['runs']}: **{row['ratio']:.1f}** ({row['least']:.1f} to {row['greatest']:.1f})" for row in packed[1:]
        )
        parts = " ".join(f"{100 * best[name]:.0f}" for name in PARTS)
        peak = f"{alone['share_of_peak']:.0%}, {best['share_of_peak']:.0%}" if best["share_of_peak"] else ""
        cells = [
            family,
            f"{float(format(plain['milliseconds'], '.3g')):g}",  # 1770, not 1.77e+03
            f"**{alone['ratio']:.1f}** ({alone['least']:.1f} to {alone['greatest']:.1f})",
        ]
        products = best["share_of_peak"] > 0.01
        bound = f"{best['ratio'] / best['share_of_peak']:.1f}" if products else ""
        cells += [between, peak, bound, f"{plain['megabytes']:.0f}, {best['megabytes']:.0f}", parts]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Ratios with their ranges by size of the pack; where a step of the largest pack spends its time."""
    families = list(dict.fromkeys(row["family"] for row in rows))[::-1]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 0.8 + 0.3 * len(families)), sharey=True, layout="constrained", width_ratios=(3, 2)
    )
    for place, family in enumerate(families):
        packed = [row for row in rows if row["family"] == family and row["way"] == "packed"]
        for number, row in enumerate(packed):
            height = place + 0.22 * (1 - number)
            left.plot([row["least"], row["greatest"]], [height, height], color="0.6", linewidth=1)
            left.plot(row["ratio"], height, "o", color="0.2", markersize=4)  # the colors are those of the parts at the right
            beyond = max(row["ratio"], row["greatest"]), height
            left.annotate(row["runs"], beyond, (4, 0), textcoords="offset points", fontsize=6, va="center")
        begin = 0.0
        for number, name in enumerate(PARTS):
            share = packed[-1][name]
            right.barh(
                place,
                share,
                left=begin,
                color=f"C{number}",
                height=0.7,
                label=name.replace("python", "Python") if place == 0 else None,
            )
            begin += share
    left.axvline(1, color="0.3", linewidth=0.8)
    left.set(xscale="log", xlabel="times as fast as plain PyTorch\n(line: range over rounds; number: runs in the pack)")
    left.set(yticks=range(len(families)), yticklabels=families, ylim=(-0.7, len(families) - 0.3))
    ticks = (0.5, 1, 2, 5, 10, 20, 50, 100, 500)
    left.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    left.minorticks_off()
    right.set(xlabel="share of a step, largest pack", xlim=(0, 1))
    right.legend(fontsize=7, loc="lower center", ncols=4, bbox_to_anchor=(0.5, 1), frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def keep(rows: list[dict[str, Any]], root: Path) -> None:
    """Put table and plot where they are committed."""
    with (root / "benchmarks" / "reference.csv").open("w", newline="", encoding="utf-8") as stream:
        write(rows, stream)
    draw(rows, root / "docs" / "families.png")
    shown = root / "docs" / "performance.md"
    before, rest = shown.read_text(encoding="utf-8").split(BEGIN)
    shown.write_text(f"{before}{BEGIN}\n\n{page(rows)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def slower(rows: list[dict[str, Any]], kept: list[dict[str, str]]) -> list[str]:
    """A sentence for each way whose ratio is less than nine tenths of the kept one, the ranges of the two lying apart."""
    before = {(row["family"], row["way"], row["runs"]): row for row in kept}
    found = []
    for row in rows:
        own = before.get((row["family"], row["way"], str(row["runs"])))
        if own is None:
            found.append(f"{row['family']}, {row['way']}, {row['runs']} runs: nothing is kept; run benchmarks/families.py --keep")
        elif row["way"] == "packed" and row["ratio"] < TOLERATED * float(own["ratio"]) and row["greatest"] < float(own["least"]):
            was = f"{float(own['ratio']):.2f} ({float(own['least']):.2f} to {float(own['greatest']):.2f})"
            now = f"{row['ratio']:.2f} ({row['least']:.2f} to {row['greatest']:.2f})"
            found.append(f"{row['family']}, {row['runs']} runs: slower, {now} times plain; kept: {was}")
    return found
