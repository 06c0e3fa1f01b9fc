"""Every configured figure can be drawn from the table that its runs would give: also where a method has no run on a task, or one
seed, or runs that diverged. Values are random; metrics are those of its table in reference/, or of one
by the same module."""

from __future__ import annotations

import re
import zlib
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import judged
from support.project import ROOT

from compositional.configuration.configuration import configuration
from compositional.planning.recipes import Recipes
from compositional.runs import figure_runs
from compositional.stages import plot
from compositional.tables.shared.reading import RUN, read_table

REFERENCE = ROOT / "reference"
PAPER = sorted((ROOT / "config" / "paper").glob("*.yaml"))


@cache
def figures(paper: bool) -> dict[str, dict]:
    return Recipes(configuration(ROOT / "config" / "paper.yaml", *PAPER) if paper else configuration()).figures


LIKE = {figures(False)[path.stem]["module"]: path for path in sorted(REFERENCE.glob("*.csv")) if path.stem in figures(False)}
ONE_EACH = {figure["module"]: name for name, figure in figures(False).items() if figure["module"] in LIKE}.values()
CASES = [
    *((False, name, "all") for name, figure in figures(False).items() if figure["module"] in LIKE),
    *((True, name, "all") for name, own in figures(True).items() if own["module"] in LIKE and own != figures(False).get(name)),
    *((False, name, case) for name in ONE_EACH for case in ("one seed", "a plain run diverged", "all diverged")),
]


@cache
def rows_by_task(like: Path) -> dict[str, pd.DataFrame]:
    """Rows of one run of every task of a table, without the run."""
    table = read_table(like)
    found = {}
    for task, own in table.groupby("task"):
        run = own[own.seed == own.seed.min()].groupby(["model", "regularizer", "lambda"], sort=False).get_group
        first = own[["model", "regularizer", "lambda"]].iloc[0]
        found[task] = run(tuple(first)).drop(columns=list(RUN))
    return found


def table_of(name: str, figure: dict, case: str) -> pd.DataFrame:
    """A table of a figure's runs. case: "all" (seeds, none diverged), "one seed", "a plain run diverged", or "all diverged"."""
    own = REFERENCE / f"{name}.csv"
    like, options = rows_by_task(own if own.exists() else LIKE[figure["module"]]), figure["options"]
    widest = max(like, key=lambda task: len(like[task]))
    asked = [("test", metric) for metric in [options.get("metric")] if metric]
    asked += [("probe", metric) for metrics in options.get("measures", {}).values() for metric in metrics]
    for task, rows in like.items():
        more = pd.DataFrame([pair for pair in asked if pair[1] not in set(rows.metric)], columns=["split", "metric"])
        like[task] = pd.concat([rows, more]) if len(more) else rows
    named = [(run.task, run.model, run.regularizer, run.strength, run.seed) for run in figure_runs(figure)]
    runs = pd.DataFrame([run for run in named if case != "one seed" or not run[-1]], columns=list(RUN))
    runs["like"] = runs.task.where(runs.task.isin(like), widest)
    table = runs.merge(pd.concat(like, names=["like"]).reset_index("like"), on="like").drop(columns="like")
    measured = (table.metric != "diverged") & (table.split != "reference")
    table.loc[measured, "value"] = np.random.default_rng(zlib.crc32(name.encode())).uniform(0.1, 0.9, measured.sum())
    lost = (case == "all diverged") | ((case == "a plain run diverged") & (table.regularizer == "none") & (table.seed == 0))
    table.loc[lost & measured, "value"] = np.nan
    table.loc[lost & (table.metric == "diverged"), "value"] = 1
    return table


@pytest.mark.parametrize(("paper", "name", "case"), CASES)
def test_a_configured_figure_can_be_drawn(paper, name, case):
    figure = figures(paper)[name]
    table = table_of(name, figure, case)
    refused = case == "all diverged" and figure["module"] == "selection"
    expected = pytest.raises(ValueError, match="nothing can be chosen") if refused else nullcontext()
    with expected, plot.drawn(figure["module"], table, figure["options"]) as (_, caption):
        assert not re.search(r"\bnan\b", caption)
        assert judged.misread(caption) == []
