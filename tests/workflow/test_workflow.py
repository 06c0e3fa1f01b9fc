"""The real workflow, end to end, with a tiny configuration in a copy of the project."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from support.project import FIGURE, ROOT, RUN, Project, call, jobs_as_forks, numbers_of

from compositional.configuration.configuration import configuration
from compositional.planning.recipes import Recipes
from compositional.stages.shared import forks
from compositional.terminal.figures import described

pytestmark = pytest.mark.workflow

SAYS_WHETHER_IT_IS_A_FORK = """
import sys
with open("forked", "a") as told:
    print("torch" in sys.modules, file=told)
"""


def grids(**changes) -> dict:
    """An overlay that changes the digits grid."""
    grid = {"task": "digits_concat", "model": "cnn", "regularizers": {"entropy": [0.1, 1], "additivity": [1]}, "seeds": [0, 1]}
    scan = {"task": "scan_jump", "model": "primitive_attention", "regularizers": {"entropy": [0.1]}, "seeds": [0]}
    ceiling = {"task": "digits_concat_b", "model": "cnn", "regularizers": {}, "seeds": [0]}
    return {"studies": {"compositional_regularization": {"figures": {"ablation": {"grids": [scan, grid | changes, ceiling]}}}}}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    """The figure, built from nothing."""
    project = Project(tmp_path_factory.mktemp("built"))
    project.keep_studies("compositional_regularization")
    project.snakemake(FIGURE)
    return project


@pytest.fixture
def edited(built):
    """Append or replace text in the built project; the changes and times are undone afterwards."""
    kept = {}

    def edit(name: str, old: str, new: str) -> None:
        path = built.folder / name
        kept.setdefault(path, (path.read_text(), path.stat()))
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    yield edit
    for path, (text, status) in kept.items():
        path.write_text(text)
        os.utime(path, (status.st_atime, status.st_mtime))


def test_every_stage_writes_its_files(built):
    results = built.folder / "results"
    for name in (
        "splits/scan_jump/task.json",
        "splits/digits_concat/dataset_dict.json",
        "tables/ablation.csv",
        "figures/ablation.png",
    ):
        assert (results / name).is_file()
    assert {path.name for path in (built.folder / RUN).iterdir()} == {
        "weights.safetensors",
        "history.csv",
        "run.json",
        "metrics.csv",
        "evaluation.json",
    }
    table = pd.read_csv(results / "tables/ablation.csv")
    assert list(table) == ["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"]
    assert len(table.groupby(["task", "model", "regularizer", "lambda", "seed"])) == 11
    predictions = pd.read_csv(results / "runs/scan_jump/primitive_attention/none/lambda=0/seed=0/predictions.csv")
    assert list(predictions) == ["input", "target", "prediction", "correct", "mistake"]
    assert len(predictions) == 200


def test_without_cores_all_cores_are_used_and_rebuilt_figures_have_the_same_bytes(built):
    names = [FIGURE, "results/figures/ablation.png", "results/figures/ablation.rst", "results/tables/ablation.csv"]
    before = built.read(*names)
    for name in names:
        (built.folder / name).unlink()
    done = call([FIGURE, "--quiet", "reason", "--configfile", "tests/support/tiny.yaml"], built.folder)
    assert f"Provided cores: {len(os.sched_getaffinity(0))}\n" in done.stdout + done.stderr
    assert built.read(*names) == before


def test_a_single_requested_run_trains_alone_and_has_the_same_bytes(built, tmp_path):
    fresh = Project(tmp_path)
    assert fresh.jobs(f"{RUN}/metrics.csv") == {
        "split": 1,
        "train_digits_concat__cnn__entropy": 1,
        "evaluate_digits_concat__cnn__entropy": 1,
    }
    fresh.snakemake(f"{RUN}/metrics.csv", **{forks.SOCKET: ""})  # as separate processes instead of forks
    assert [path.name for path in (tmp_path / "results/runs").glob("*/*/*/*/*")] == ["seed=0"]
    assert fresh.read(*numbers_of(RUN)) == built.read(*numbers_of(RUN))


def test_a_build_of_many_jobs_forks_all_of_them(tmp_path):
    """Those that start first wait until the libraries are imported."""
    project = Project(tmp_path)
    script = tmp_path / "workflow" / "scripts" / "split.py"
    script.write_text(SAYS_WHETHER_IT_IS_A_FORK + script.read_text())
    command = project.command("--cores", "1", FIGURE, "--until", "split")
    environment = {name: value for name, value in os.environ.items() if name != forks.SOCKET}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "forked").read_text().split() == ["True", "True", "True"]


def test_jobs_are_looked_for_once_per_ended_job(tmp_path):
    """Snakemake's default limit of starts makes it look for jobs while others wait, more often with every job that has ended."""
    project = Project(tmp_path)
    script = tmp_path / "workflow" / "scripts" / "split.py"
    script.write_text("import time\n\ntime.sleep(1.2)\n" + script.read_text())
    shown = {}
    for limit in ("100/1s", "101/1s"):
        words = ("--cores", "1", "--until", "split", "--verbose", "--max-jobs-per-timespan", limit)
        shown[limit] = project.snakemake(FIGURE, *words).count("Ready jobs: ")
        shutil.rmtree(tmp_path / "results")
    assert shown["100/1s"] == 3
    assert shown["101/1s"] > 3  # another limit is kept


def test_a_single_family_uses_all_cores(built, tmp_path):
    """Finished runs stay in their packs, so this needs a folder without results."""
    runs = [f"results/runs/scan_jump/lstm_attention/recombination/lambda=1/seed={seed}/run.json" for seed in range(4)]
    planned = {}
    for cores in ("1", "4"):
        done = call(["-n", "--cores", cores, *runs, "--config", "device=cpu", "--directory", str(tmp_path)], built.folder)
        planned[cores] = re.findall(r"Training (\d) runs? of", done.stdout + done.stderr)
    assert planned == {"1": ["4"], "4": ["1"] * 4}


def test_jobs_that_take_long_start_first(built, tmp_path):
    """The three plain runs see more examples than the other run, but its penalty makes it take longer."""
    short = [f"results/runs/digits_concat/cnn/none/lambda=0/seed={seed}/run.json" for seed in (0, 1, 2)]
    long = "results/runs/digits_concat/cnn/interaction/lambda=1/seed=0/run.json"
    shown = built.snakemake(*short, long, "--cores", "1", "--directory", str(tmp_path))
    assert re.findall(r"Training (.*)", shown) == [
        "1 run of digits_concat/cnn/interaction",
        "3 runs of digits_concat/cnn/none",
    ]


def test_adding_a_seed_or_a_lambda_makes_only_the_new_runs(built):
    rest = {"aggregate": 1, "plot": 1}
    seeds = built.overlay(grids(seeds=[0, 1, 2]))
    new = {
        f"{stage}_digits_concat__cnn__{name}": 1 for stage in ("train", "evaluate") for name in ("none", "entropy", "additivity")
    }
    assert built.jobs(FIGURE, overlay=seeds) == new | rest
    strengths = built.overlay(grids(regularizers={"entropy": [0.1, 1, 10], "additivity": [1]}))
    assert built.jobs(FIGURE, overlay=strengths) == rest | {
        f"{stage}_digits_concat__cnn__entropy": 1 for stage in ("train", "evaluate")
    }
    output = built.snakemake(f"{RUN.replace('0.1', '10')}/run.json")
    assert "1 of 1 jobs done" in output


def test_a_call_that_is_refused_because_another_one_builds_changes_nothing(built):
    more = built.overlay(grids(seeds=[0, 1, 2]))
    lock = built.folder / ".snakemake/locks/0.output.lock"
    lock.parent.mkdir(exist_ok=True)
    lock.write_text(FIGURE)
    results = [path for path in (built.folder / "results").rglob("*") if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in results}
    try:
        assert "LockException" in built.snakemake(FIGURE, "--force", overlay=more, succeeds=False)
    finally:
        lock.unlink()
    assert {path: path.stat().st_mtime_ns for path in results} == before


def test_the_jobs_of_two_calls_that_start_together_find_their_recipes(built):
    """The second call starts and ends after the first one has read its files and before it locks the folder."""
    (built.folder / "waiting.smk").write_text(
        'include: "Snakefile"\n\nimport time\n\nPath("waits").touch()\nwhile not Path("goes").exists():\n    time.sleep(0.1)\n'
    )
    names = [f"{RUN.removesuffix('0')}{seed}" for seed in (5, 6)]
    command = [*built.command(f"{names[0]}/run.json"), "--snakefile", "waiting.smk"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    first = subprocess.Popen(command, cwd=built.folder, env=os.environ | jobs_as_forks(), **streams)
    try:
        deadline = time.monotonic() + 200
        while not (built.folder / "waits").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert (built.folder / "waits").exists()
        built.snakemake(f"{names[1]}/run.json")
    finally:
        (built.folder / "goes").touch()
    output, _ = first.communicate(timeout=300)
    assert first.returncode == 0, output
    assert all((built.folder / name / "run.json").exists() for name in names)


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([("src/compositional/figures/shared/style.py", '"font.size": 9', '"font.size": 8')], {"plot"}),
        ([("src/compositional/figures/ablation.py", "0.05 * dot", "0.06 * dot")], {"plot"}),
        (
            [("src/compositional/stages/aggregate.py", "tuple[str, ...]] = {}", "tuple[str, ...]] = dict()")],
            {"aggregate", "plot"},
        ),
        (
            [("src/compositional/regularizers/additivity.py", ".square().sum(-1).mean(-1)", ".square().sum(-1).mean(-1) * 1")],
            {"train_digits_concat__cnn__additivity", "evaluate_digits_concat__cnn__additivity", "aggregate", "plot"},
        ),
        (
            [
                ("src/compositional/regularizers/entropy.py", '"description": "', '"description": "in other words, '),
                ("src/compositional/regularizers/entropy.py", "from __future__", "# a comment\nfrom __future__"),
                # The first docstring of the file, whatever its content.
                ("src/compositional/training/pack.py", '"""', '"""One more sentence. '),
                ("src/compositional/layers/functional.py", '"""', '"""One more sentence. '),
                ("src/compositional/regularizers/smoothness.py", ".square()", ".abs()"),  # the figure does not use it
            ],
            set(),
        ),
    ],
)
def test_an_edit_reruns_exactly_what_it_touches(built, edited, edits, expected):
    for file, old, new in edits:
        edited(file, old, new)
    assert set(built.jobs(FIGURE)) == expected


def test_a_changed_option_reruns_exactly_what_it_touches(built):
    overlay = built.overlay({"regularizers": {"entropy": {"feature_noise": 0.5}}})
    assert set(built.jobs(FIGURE, overlay=overlay)) == {
        *(
            f"{stage}_{task}__entropy"
            for stage in ("train", "evaluate")
            for task in ("digits_concat__cnn", "scan_jump__primitive_attention")
        ),
        "aggregate",
        "plot",
    }
    none = {"device": "auto", "checkpoint_seconds": 5, "pack_size": {"cpu": {"default": 1}}}
    assert built.jobs(FIGURE, overlay=built.overlay(none | {"mirror": "/nowhere", "store": "/nowhere"})) == {}


def test_hidden_files_of_editors_among_the_studies_are_not_read(built):
    lock = built.folder / "config/studies/.#language.yaml"
    lock.symlink_to("nowhere")
    try:
        assert "Nothing to be done" in built.snakemake(FIGURE, "--dryrun")
    finally:
        lock.unlink()


def test_a_wrong_configuration_stops_before_any_job(tmp_path):
    project = Project(tmp_path)
    overlay = project.overlay(grids(regularizers={"entropie": [1]}))
    output = project.snakemake(FIGURE, overlay=overlay, succeeds=False)
    assert "unknown regularizer 'entropie'; did you mean 'entropy'?" in output
    study = tmp_path / "config/studies/compositional_regularization.yaml"
    shutil.copy(study, study.with_name("my_copy.yaml"))
    copied = project.snakemake(FIGURE, succeeds=False)
    assert f"figures.ablation is in {study} and again in {study.with_name('my_copy.yaml')}: rename it" in copied
    assert "Traceback" not in output + copied
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("name", "why"), [("a{b}", "Snakemake reads braces"), ("a:b", "Python reads : in PYTHONPATH")])
def test_a_path_that_snakemake_or_python_would_read_otherwise_is_refused(tmp_path, name, why):
    """It is refused before anything else is read, so links are enough."""
    folder = tmp_path / name
    folder.mkdir()
    for needed in ("Snakefile", "rules", "profiles", "src", "config"):
        (folder / needed).symlink_to(ROOT / needed)
    done = call(["--cores", "1", FIGURE], folder)
    output = done.stdout + done.stderr
    assert done.returncode, output
    assert f"{name}: {why}" in output
    assert "Traceback" not in output
    assert not (folder / "results").exists()


def test_a_diverged_run_is_marked_in_table_and_caption(archived_project):
    table = pd.read_csv(archived_project.folder / "results/tables/ablation.csv")
    lost = table[table["lambda"] == 1e38]
    assert lost[lost.metric == "diverged"].value.tolist() == [1, 1]
    assert lost[lost.metric == "accuracy"].value.isna().all()
    assert table[(table["lambda"] < 1) & (table.metric == "accuracy")].value.notna().all()
    assert "2 runs diverged" in (archived_project.folder / "results/figures/ablation.rst").read_text()


def test_a_killed_training_resumes_from_its_checkpoint_with_the_same_bytes(tmp_path):
    project = Project(tmp_path)
    overlay = project.overlay({"tasks": {"digits_concat": {"training": {"steps": 1000, "record_every": 50}}}})
    command = project.command(f"{RUN}/run.json", overlay=overlay)
    environment, silent = os.environ | jobs_as_forks(), subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, start_new_session=True, stdout=silent, stderr=silent)
    checkpoints = tmp_path / "results/store/checkpoints"
    deadline = time.monotonic() + 100
    while not list(checkpoints.glob("*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert list(checkpoints.glob("*.safetensors"))
    assert not (tmp_path / RUN / "weights.safetensors").exists()
    project.snakemake("--unlock")
    project.snakemake(f"{RUN}/run.json", "--rerun-incomplete", overlay=overlay)
    (log,) = (tmp_path / "results/logs/train").glob("*.log")
    assert "resuming from checkpoints" in log.read_text()
    assert list(checkpoints.glob("*")) == []
    disturbed = project.read(*numbers_of(RUN)[:2])
    shutil.rmtree(tmp_path / "results")
    project.snakemake(f"{RUN}/run.json", overlay=overlay)
    assert "resuming" not in log.read_text()
    assert project.read(*numbers_of(RUN)[:2]) == disturbed


def test_a_damaged_store_entry_is_trained_again(built):
    before = built.read(*numbers_of(RUN)[:2])
    for path in (built.folder / "results/store/entries").rglob("*.json"):
        path.write_bytes(path.read_bytes()[:-9])
    (built.folder / RUN / "weights.safetensors").unlink()
    output = built.snakemake(f"{RUN}/weights.safetensors")
    assert built.read(*numbers_of(RUN)[:2]) == before
    assert "Restoring 1 run of digits_concat/cnn/entropy" in output  # the damage is noticed when it is read
    built.snakemake(FIGURE)


def test_the_error_without_network_states_what_to_do_and_no_file_is_left(built, tmp_path, monkeypatch):
    monkeypatch.delenv("COMPOSITIONAL_MIRROR", raising=False)
    words = ("results/splits/mnist_concat", "--directory", str(tmp_path))
    output = built.snakemake(*words, overlay=built.overlay({"sources": ["mirror"]}), succeeds=False)
    assert "mirror: LookupError: no mirror folder configured" in output
    assert "COMPOSITIONAL_MIRROR=<folder>" in output
    assert [path for path in (tmp_path / "results").rglob("*ubyte*") if path.suffix != ".log"] == []


def test_a_full_or_read_only_disk_is_a_clear_error_and_the_next_call_resumes(tmp_path):
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root to mount a small file system")
    project = Project(tmp_path)
    results = tmp_path / "results"
    results.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(results)], check=False)
    if mounted.returncode:
        pytest.skip("this machine does not let us mount a file system")
    try:
        output = project.snakemake(f"{RUN}/run.json", succeeds=False)
        assert "No space left on device" in output
        assert not (tmp_path / RUN / "run.json").exists()
        subprocess.run(["mount", "-o", "remount,ro", str(results)], check=True)
        output = project.snakemake(f"{RUN}/run.json", "--nolock", succeeds=False)
        assert re.search("Read-only file system: .*Nothing can be written to results/: free some space", output)
        assert "Traceback" not in output
        subprocess.run(["mount", "-o", "remount,rw,size=50m", str(results)], check=True)
        project.snakemake(f"{RUN}/run.json", "--rerun-incomplete")
        assert (tmp_path / RUN / "run.json").exists()
    finally:
        subprocess.run(["umount", str(results)], check=True)


def test_snakemakes_report_contains_figure_and_caption(built):
    built.snakemake("--report", "report.html", FIGURE)
    page = (built.folder / "report.html").read_text()
    assert "ablation.png" in page
    assert "Accuracy against the strength lambda" in page


def test_the_workflow_is_linted_and_formatted(built):
    assert "Congratulations" in built.snakemake("--lint")
    binaries = Path(sys.executable).parent
    for command in (["ruff", "check", "src", "tests", "benchmarks"], ["ruff", "format", "--check", "src", "tests", "benchmarks"]):
        done = subprocess.run([binaries / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    done = subprocess.run(
        [binaries / "snakefmt", "--check", "Snakefile", "rules"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_failed_build_ends_with_the_failed_jobs_and_commands_to_run_them_alone(built):
    """The command makes the result alone, with the same bytes as before."""
    before = built.read(*numbers_of(RUN)[:2])
    shutil.rmtree(built.folder / "results/runs/digits_concat/cnn/entropy")
    for name in ("tables/ablation.csv", "figures/ablation.pdf"):
        (built.folder / "results" / name).unlink()
    shutil.move(built.folder / "results/store", built.folder / "elsewhere")
    (built.folder / "results/store").write_text("in the way")
    output = built.snakemake(FIGURE, succeeds=False)
    (built.folder / "results/store").unlink()
    shutil.move(built.folder / "elsewhere", built.folder / "results/store")
    end = output.rstrip().splitlines()[-6:]
    assert end[0] == "Training 4 runs of digits_concat/cnn/entropy"
    assert end[1].startswith("  NotADirectoryError: ")
    assert "Traceback" in (built.folder / end[2].removeprefix("  log: ")).read_text()
    assert end[-1] == "Repeat the command to resume: finished results are kept."
    options = end[3].removeprefix("  alone: snakemake ").split()
    assert options[1:] == ["--configfile", "tests/support/tiny.yaml"]
    assert "1 of 1 jobs done" in built.snakemake(options[0])
    assert built.read(*numbers_of(RUN)[:2]) == before
    built.snakemake(FIGURE)


def test_a_build_is_quiet_and_the_nearest_match_of_a_missing_target_is_named(built):
    (built.folder / FIGURE).unlink()
    profile, *lines = built.snakemake(FIGURE).splitlines()
    assert profile == "Using workflow specific profile profiles/default for setting default command line arguments."
    assert [re.sub(r"^\[[0-9:]+\] |in [0-9]+ (s|min)$", "", line) for line in lines] == ["Drawing ablation", "1 of 1 jobs done "]
    assert built.snakemake("ablation", succeeds=False).splitlines() == [
        profile,
        "Nothing makes ablation; did you mean results/figures/ablation.pdf? README.md lists the targets.",
    ]
    listed = built.snakemake("--list-target-rules")
    assert re.findall(r"^(\w+) \(", listed, re.MULTILINE) == ["all", "archive", "manifest", "report"]
    assert len(listed.splitlines()) == 5
    assert built.snakemake("-n", FIGURE, overlay="config/papr.yaml", succeeds=False).splitlines() == [
        profile,
        "--configfile config/papr.yaml: there is no such file; did you mean config/paper.yaml?",
    ]


def test_the_list_of_figures_states_which_are_built_and_what_the_others_need(built, monkeypatch, capsys):
    def listed(overlay: str) -> str:
        monkeypatch.setattr(sys, "argv", ["figures.py", "--configfile", overlay])
        runpy.run_path(str(ROOT / "workflow/figures.py"), run_name="__main__")
        return capsys.readouterr().out

    monkeypatch.chdir(built.folder)
    shown, figure = listed("tests/support/tiny.yaml"), built.folder / FIGURE
    assert re.search(r"^  ablation: built; runs: (\d+), \1 of them exist; data: digits, scan$", shown, re.MULTILINE), shown
    assert re.search(r"^  learning_curves: not built, about \d+ min; runs: \d+, \d+ of them exist; data:", shown, re.MULTILINE)
    assert re.search(r"^  comparison_cogs: not built, .+; runs: \d+; data: cogs \(download\)$", shown, re.MULTILINE)
    figure.rename(figure.with_suffix(".away"))
    recipes = Recipes(configuration(Path("tests/support/tiny.yaml")), Path("results"))
    recipes.figures = {"ablation": recipes.figures["ablation"]}  # all of them would take seconds
    assert [one.state for one in described(recipes, 2)] == ["not built"]
    figure.with_suffix(".away").rename(figure)
    assert [one.state for one in described(recipes, 2)] == ["built"]
    wrong = "^--configfile tests/support/tinny.yaml: there is no such file; did you mean tests/support/tiny.yaml\\?$"
    with pytest.raises(SystemExit, match=wrong):
        listed("tests/support/tinny.yaml")
