"""The lambda that each protocol chooses, and the test accuracy of the chosen runs.

A setting is (regularizer, lambda); the plain model, ("none", 0), can always be chosen. A setting is judged by its mean over
seeds, and never chosen if one of its runs diverged. Ties (equal means, to nine digits) go to the smallest mean loss on the same
member, then to the smallest lambda, then to the first name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compositional.figures.shared import ranks
from compositional.tasks import IN_DISTRIBUTION

Setting = tuple[str, float]

PLAIN: Setting = ("none", 0.0)
COMPOSITIONAL = "compositional"  # the member of tasks that is meant for choosing settings
POINT = 0.01
_DIGITS = 9


@dataclass(frozen=True)
class Choice:
    """settings: the choice by seed (the same for all seeds, except if each seed is left out). tied: settings with the best score;
    score: its value, if there is one choice for all seeds."""

    settings: dict[int, Setting]
    tied: tuple[Setting, ...]
    score: float


def runs_of(table: pd.DataFrame) -> pd.DataFrame:
    """One row per run of one task and model, by regularizer, lambda and seed: accuracy and loss on its members, as columns
    test, in_distribution, in_distribution_loss, compositional, compositional_loss; nan if it diverged."""
    own = next(name for name in IN_DISTRIBUTION if name in set(table.split))
    columns = {}
    for name, member in (("in_distribution", own), (COMPOSITIONAL, COMPOSITIONAL), ("test", "test")):
        for metric, column in (("accuracy", name), ("loss", f"{name}_loss")):
            rows = table[(table.split == member) & (table.metric == metric)]
            columns[column] = rows.set_index(["regularizer", "lambda", "seed"]).value
    return pd.DataFrame(columns).sort_index()


def means_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds by setting, nan if a run diverged."""
    return runs.groupby(level=["regularizer", "lambda"]).agg(lambda values: values.mean(skipna=False))


def best(means: pd.DataFrame, member: str) -> tuple[Setting, tuple[Setting, ...]]:
    """The setting with the best accuracy on a member, and all settings with the same accuracy.

    Raises:
        ValueError: every setting has a diverged run.
    """
    known = means[[member, f"{member}_loss"]].dropna(subset=member).round(_DIGITS)
    if known.empty:
        raise ValueError(f"every setting has a run without accuracy on {member!r}: nothing can be chosen; lower some lambdas")
    tied = known[known[member] == known[member].max()].reset_index()
    order = tied.sort_values([f"{member}_loss", "lambda", "regularizer"])[["regularizer", "lambda"]]
    settings = tuple(order.itertuples(index=False, name=None))
    return settings[0], settings


def _within_one_point(means: pd.DataFrame) -> Setting:
    """The largest lambda whose accuracy in distribution is at most one point below the plain model's."""
    enough = means[means.in_distribution >= means.in_distribution[PLAIN] - POINT - 10**-_DIGITS]
    return max(enough.index, key=lambda setting: setting[1])


def choices(runs: pd.DataFrame, regularizers: Iterable[str]) -> dict[str, Choice]:
    """The choice of every protocol among the plain model and some regularizers. Lambdas of several regularizers cannot be
    compared, so "within one point" then makes no choice; nor does it if a plain run diverged.

    Args:
        runs: as returned by `runs_of`.
    """
    names = {"none", *regularizers}
    runs = runs[runs.index.get_level_values("regularizer").isin(names)]
    means, seeds = means_of(runs), sorted(set(runs.index.get_level_values("seed")))
    found = {}
    for protocol, member in (("in-distribution", "in_distribution"), ("compositional", COMPOSITIONAL), ("oracle", "test")):
        setting, tied = best(means, member)
        found[protocol] = Choice(dict.fromkeys(seeds, setting), tied, float(means[member][setting]))
    if len(seeds) > 1:
        left = {seed: best(means_of(runs.drop(seed, level="seed")), COMPOSITIONAL) for seed in seeds}
        found["leave one seed out"] = Choice({seed: setting for seed, (setting, _) in left.items()}, (), float("nan"))
    if len(names) == 2 and not np.isnan(means.in_distribution[PLAIN]):
        setting = _within_one_point(means)
        found["within one point"] = Choice(dict.fromkeys(seeds, setting), (setting,), float(means.in_distribution[setting]))
    return found


def rank_correlation(runs: pd.DataFrame, column: str, least: float) -> tuple[float, int]:
    """Spearman's correlation of a validation accuracy with test accuracy (nan if one is constant or there are fewer than three
    runs), and the number of runs: those with at least `least` in distribution. runs: as returned by `runs_of`."""
    known = runs.dropna(subset=[column, "in_distribution", "test"])
    known = known[known.in_distribution >= least]
    return (ranks.correlation(known[column], known.test) if len(known) > 2 else np.nan), len(known)


def better_ranking(runs: pd.DataFrame, least: float) -> pd.Series:
    """The `rank_correlation` of compositional validation minus that of accuracy in distribution among the runs of each seed, by
    seed; nan if one of the two is."""

    def correlation(own: pd.DataFrame, column: str) -> float:
        return rank_correlation(own, column, least)[0]

    seeds = runs.groupby("seed")
    return pd.Series({seed: correlation(own, COMPOSITIONAL) - correlation(own, "in_distribution") for seed, own in seeds})


def reached(runs: pd.DataFrame, settings: dict[int, Setting]) -> pd.Series:
    """Test accuracy of the chosen run of every seed, by seed; seeds without this run are left out."""
    there = {seed: (*setting, seed) for seed, setting in settings.items() if (*setting, seed) in runs.index}
    return pd.Series({seed: runs.test[key] for seed, key in there.items()}, dtype=float)


def gains(runs: pd.DataFrame, settings: dict[int, Setting]) -> pd.Series:
    """Test accuracy of the chosen runs minus that of the plain run of the same seed, by seed."""
    return reached(runs, settings) - reached(runs, dict.fromkeys(settings, PLAIN))
