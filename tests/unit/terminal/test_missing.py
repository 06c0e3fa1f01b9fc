"""The error for a target that no rule makes names the nearest one."""

from __future__ import annotations

import pytest

from compositional.terminal.missing import A_RUN, nearest

FIGURES, TASKS = ["ablation", "comparison_cogs", "metrics"], ["scan_jump", "digits_concat"]
RUN = "results/runs/digits_concat/cnn/entropy/lambda=0.1/seed=0"


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("ablation", "results/figures/ablation.pdf"),
        ("abltion", "results/figures/ablation.pdf"),
        ("ablation.svg", "results/figures/ablation.pdf"),
        ("ablation.png", "results/figures/ablation.png"),
        ("results/figures/ablation.svg", "results/figures/ablation.pdf"),
        ("ablation.csv", "results/tables/ablation.csv"),
        ("metric.csv", f"{A_RUN}/metrics.csv"),
        (f"{RUN}/metric.csv", f"{RUN}/metrics.csv"),
        ("comparison_cog", "results/figures/comparison_cogs.pdf"),
        ("scan_jum", "results/splits/scan_jump"),
        ("report.html", "results/report.html"),
        ("reprot", "report"),
    ],
)
def test_the_nearest_target_is_named(target, found):
    assert nearest(target, FIGURES, TASKS).startswith(f"Nothing makes {target}; did you mean {found}? README.md lists")


def test_no_target_is_suggested_if_none_is_near():
    assert nearest("results/foo", FIGURES, TASKS).startswith("Nothing makes results/foo. README.md lists")


def test_a_stage_whose_jobs_have_rules_of_their_own_is_explained():
    assert nearest("train", FIGURES, TASKS).startswith("There is no rule train: each job of runs has its own, train_<task>__")
