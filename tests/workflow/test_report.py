"""The report in a real browser: it is complete, fetches nothing, and has no errors."""

from __future__ import annotations

import html
import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from support.project import Project

from compositional.stages import report

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")


@pytest.fixture(scope="module")
def opened(archived_project):
    """The page, opened in a browser, with its console messages and its requests."""
    from support import browser

    try:
        with browser.browser() as started:
            page = started.new_context(offline=True, viewport={"width": 1100, "height": 900}).new_page()
            page.set_default_timeout(180_000)  # a screenshot of the complete page takes long on a busy machine
            heard: list[str] = []
            asked: list[str] = []
            page.on("console", lambda message: heard.append(message.text))
            page.on("pageerror", lambda error: heard.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            page.goto((archived_project.folder / "results/report.html").as_uri())
            yield page, heard, asked
    except browser.UnavailableError as error:
        pytest.skip(f"no browser: {error}")


@pytest.mark.workflow
def test_nothing_is_fetched_and_the_console_is_silent(opened, archived_project):
    page, heard, asked = opened
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.mouse.wheel(0, 5000)
    page.wait_for_load_state("networkidle")
    assert heard == []
    assert [url for url in asked if not url.startswith("data:")] == [(archived_project.folder / "results/report.html").as_uri()]


@pytest.mark.workflow
def test_figure_caption_table_and_runs_are_visible(opened):
    page, _, _ = opened
    widths = page.evaluate("[...document.images].map(image => image.complete && image.naturalWidth)")
    assert len(widths) == 1
    assert widths[0] > 500
    shown = page.inner_text("body")
    assert "Dots are seeds" in shown
    assert "2 diverged" in page.inner_text("header")
    assert "snakemake results/figures/ablation.pdf --configfile tests/support/tiny.yaml overlay.yaml" in shown
    assert "snakemake results/figures/resists_mnist.pdf --configfile tests/support/tiny.yaml overlay.yaml" in shown
    assert "Made with another configuration" not in shown
    assert re.search(r"Cost: [0-9].* of one core or device for training and evaluating 6 runs", shown)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.locator(".seed.diverged").count() == 2
    assert page.locator(".seed.done").count() == 4
    assert page.locator(".seed.missing").first.is_visible()
    assert "at step" in page.locator(".seed.diverged").first.get_attribute("title")
    assert re.split(r"\s+", page.locator("tr", has_text="1e+38").first.inner_text())[:5] == [
        "digits_concat",
        "cnn",
        "additivity",
        "1e+38",
        "diverged",
    ]
    with page.expect_download() as saved:
        page.get_by_text("Every number, as CSV").click()
    assert {"accuracy", "loss", "diverged"} <= set(pd.read_csv(saved.value.path()).metric)


@pytest.mark.workflow
def test_a_point_shows_its_run_and_the_command_that_rebuilds_it(opened, archived_project):
    """All runs that did not diverge are in both panels, and the pointer finds each where the image shows it."""
    page, _, _ = opened
    said = page.evaluate("[...document.querySelectorAll('circle title')].map(title => title.textContent)")
    table = pd.read_csv(archived_project.folder / "results/tables/ablation.csv")
    rows = table[(table.metric == "accuracy") & table.value.notna() & table.split.isin(["test", "validation"])]
    lines = {line for text in said for line in text.split("\n")}
    for row in rows.to_dict("records"):
        run = f"digits_concat/cnn/{row['regularizer']}/lambda={row['lambda']:g}/seed={row['seed']}"
        assert f"{run}: {row['split']} accuracy {row['value']:.4g}" in lines
        assert f"snakemake results/runs/{run}/metrics.csv --configfile tests/support/tiny.yaml overlay.yaml" in lines
    assert len(rows) == 8
    for circle in page.locator("circle").all():
        circle.scroll_into_view_if_needed()
        box = circle.bounding_box()
        under = "([x, y]) => document.elementFromPoint(x, y).tagName"
        assert page.evaluate(under, [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]) == "circle"


@pytest.mark.workflow
def test_a_figure_of_another_configuration_is_marked(archived_project):
    """The page is made for a configuration with another seed, without building anything."""
    recipe = json.loads(next((archived_project.folder / "results/recipes").glob("report_*.json")).read_text())["recipe"]
    recipe["digests"]["ablation"] = "of another one"
    here = Path.cwd()
    os.chdir(archived_project.folder)
    try:
        text = report.render(Path("results"), recipe)
    finally:
        os.chdir(here)
    assert text.count("Made with another configuration or other code than today's") == 1


@pytest.mark.workflow
def test_no_part_of_the_page_is_blank(opened):
    page, _, _ = opened
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height > 900
    for third in range(3):  # not the full page: it is longer than a picture may be
        page.evaluate(f"window.scrollTo(0, {third * height // 3})")
        image = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("L"))
        assert image.shape[1] == 1100
        assert image.std() > 5
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.workflow
def test_the_command_of_a_figure_can_be_pasted_whatever_its_files_are_called(tmp_path):
    """The page can also be made if the folder is not in a git repository."""
    project = Project(tmp_path)
    (tmp_path / "my overlay.yaml").write_text("archive: {figures: []}")
    project.snakemake("results/report.html", overlay="my overlay.yaml")
    page = html.unescape((tmp_path / "results/report.html").read_text())
    assert "snakemake results/figures/ablation.pdf --configfile tests/support/tiny.yaml 'my overlay.yaml'<" in page
    assert "This page: commit <code>unknown</code>, Python" in page


def test_summaries_of_tables_equal_hand_computed_values():
    rows = [("t", "m", "none", 0.0, seed, step, "test", "accuracy", seed + step) for seed in (1, 3) for step in (0, 10)]
    columns = ["task", "model", "regularizer", "lambda", "seed", "step", "split", "metric", "value"]
    shown, cells, note = report.summarize(pd.DataFrame(rows, columns=columns))
    assert shown == ["task", "model", "regularizer", "lambda", "test accuracy"]
    # 11 and 13: mean 12, standard error 1, t(0.975, 1) = 12.706.
    assert cells == [["t", "m", "none", "0", "12.000 ± 12.706"]]
    assert note == "at the last step"
    ended = [row if row[4] == 1 else (*row[:5], row[5] // 2, *row[6:8], float("nan")) for row in rows]
    assert report.summarize(pd.DataFrame(ended, columns=columns))[1] == [["t", "m", "none", "0", "11.000 (1 diverged)"]]
    lost = pd.DataFrame([(*rows[0][:5], "test", "accuracy", float("nan"))], columns=[c for c in columns if c != "step"])
    assert report.summarize(lost)[1] == [["t", "m", "none", "0", "diverged"]]


def test_captions_cannot_run_code_or_include_files():
    text = report._html(".. raw:: html\n\n   <script>alert(1)</script>\n\n.. include:: /etc/hostname\n\nAnd **bold**.")
    assert "<script" not in text
    assert "<strong>bold</strong>" in text


def test_durations_are_written_in_words():
    assert [report.duration(seconds) for seconds in (0.42, 35, 470, 7380)] == ["0.4 s", "35 s", "7 min 50 s", "2 h 3 min"]
