"""A tiny build with archive and report, to be run with the oldest and newest supported versions of Python and Snakemake."""

from __future__ import annotations

import zipfile

import pytest


@pytest.mark.workflow
def test_a_tiny_build_is_archived_and_reported(archived_project):
    results = archived_project.folder / "results"
    assert "archived/results/figures/ablation.pdf" in zipfile.ZipFile(results / "archive.zip").namelist()
    assert "Dots are seeds" in (results / "report.html").read_text()
    output = archived_project.snakemake("results/archive.zip", "results/report.html", overlay="overlay.yaml")
    assert "Nothing to be done" in output
