"""Reruns: in every state of a results folder, exactly the outdated results are made again, and nothing is lost.

One build is made and copied for each state. "Exactly" means: a dry run changes nothing and lists the jobs that the real call then
runs, if any, and after that call no jobs remain.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.project import Project, call, jobs_as_forks

from compositional import files
from compositional.planning import pack_sizes
from compositional.records.entries import entries
from compositional.records.links import is_linked
from compositional.records.store import read

pytestmark = pytest.mark.workflow
TASKS = {
    "digits_concat": {"train_pairs": 100, "test_pairs": 40, "training": {"steps": 4, "batch_size": 16, "record_every": 2}},
    "digits_concat_b": {"train_pairs": 100, "test_pairs": 40, "training": {"steps": 4, "batch_size": 16, "record_every": 2}},
    "scan_jump": {"training": {"steps": 2, "batch_size": 64, "record_every": 2, "curve_examples": 32}},
}
DIGITS, SCAN = (
    "results/runs/digits_concat/cnn/none/lambda=0/seed=",
    "results/runs/scan_jump/primitive_attention/none/lambda=0/seed=0",
)
RUN, OTHER, SIDE = f"{DIGITS}0", f"{DIGITS}1", "results/runs/digits_concat_b/cnn/none/lambda=0/seed=0"
ARROW = "results/splits/digits_concat/test/data-00000-of-00001.arrow"
SMALL, WHOLE = "results/figures/small.pdf", "results/figures/whole.pdf"
PACK = {"train": 1, "evaluate": 1, "aggregate": 2, "plot": 2}


def grid(task: str, seeds: list[int], model: str = "cnn") -> dict:
    return {"task": task, "model": model, "regularizers": {}, "seeds": seeds}


def overlay(**training) -> dict:
    """Two figures: `whole` with four runs of three families, and `small` with two of these; with settings for digits_concat."""
    figures = {
        "whole": {
            "module": "ablation",
            "grids": [grid("digits_concat", [0, 1]), grid("digits_concat_b", [0]), grid("scan_jump", [0], "primitive_attention")],
        },
        "small": {"module": "ablation", "grids": [grid("digits_concat", [0, 1])]},
    }
    tasks = copy.deepcopy(TASKS)
    tasks["digits_concat"]["training"] |= training
    return {"tasks": tasks, "studies": {"compositional_regularization": {"figures": figures}}}


class Built(Project):
    """A copy of the build that a test changes."""

    targets = (SMALL, WHOLE)

    def configure(self, **training) -> None:
        self.overlay(overlay(**training))

    def told(self, *arguments: str, succeeds: bool = True, **environment: str) -> str:
        """The output of a call with today's overlay."""
        everything = () if "-n" in arguments else ("--quiet", "reason")  # print everything about jobs except the reasons
        return self.snakemake(*arguments, *everything, overlay="overlay.yaml", succeeds=succeeds, **environment)

    def tree(self, times: bool = True) -> dict[str, tuple]:
        """Every result with its bytes and, if requested, its time."""
        return {
            path.relative_to(self.folder).as_posix(): (files.sha256(path), path.stat().st_mtime_ns if times else 0)
            for path in sorted((self.folder / "results").rglob("*"))
            if path.is_file() and path.name != ".snakemake_timestamp"
        }

    def numbers(self) -> dict[str, str]:
        """Every file whose bytes must not depend on when it is made."""
        stages = ("results/splits", "results/runs", "results/tables", "results/figures")
        return {
            name: digest for name, (digest, _) in self.tree().items() if name.startswith(stages) and not name.endswith(".json")
        }

    def exactly(self, *targets: str, options: tuple[str, ...] = (), **environment: str) -> tuple[Counter, set[str]]:
        """The jobs of a call by stage, and the runs that it trained."""
        arguments = [*(targets or self.targets), *options]
        before = self.tree()
        shown = self.said = self.told(*arguments, "-n", **environment)
        assert self.tree() == before
        if not jobs(shown):
            return Counter(), set()
        shutil.rmtree(self.folder / "results/logs", ignore_errors=True)
        done = self.told(*arguments, **environment)
        assert jobs(shown) == jobs(done), f"-n:\n{shown}\nreal:\n{done}"
        assert jobs(again := self.told(*arguments, "-n", **environment)) == [], again
        logs = [path.read_text() for path in (self.folder / "results/logs/train").glob("*.log")]
        trained = {run for log in logs for run in re.findall(r"^(\S+/seed=\d+) step \d+", log, re.MULTILINE)}
        return Counter(name.partition("_")[0] for name, _ in rules(done)), trained


def rules(output: str) -> list[tuple[str, int]]:
    table = output.partition("Job stats:")[2].partition("total")[0]
    return [(name, int(count)) for name, count in re.findall(r"^(\w+)\s+(\d+)$", table, re.MULTILINE) for _ in range(int(count))]


def jobs(output: str) -> list:
    """The rules of the jobs, whose names are digests of their runs and recipes, and each job's message."""
    return sorted(rules(output)) + sorted(re.findall(r"^Job \d+: (.*)$", output, re.MULTILINE))


@pytest.fixture(scope="session")
def base(tmp_path_factory) -> Built:
    built = Built(tmp_path_factory.mktemp("reruns"))
    built.keep_studies("compositional_regularization")
    built.configure()
    jobs, trained = built.exactly()
    assert jobs == {"split": 3, "train": 3, "evaluate": 3, "aggregate": 2, "plot": 2}
    assert len(trained) == 4
    return built


@pytest.fixture
def built(base, tmp_path) -> Built:
    copied = copy.copy(base)
    copied.folder = tmp_path / "copy"
    subprocess.run(["cp", "-a", base.folder, copied.folder], check=True)
    return copied


def damage(path: Path, in_place: bool = False) -> None:
    """Another file in its place, or other bytes in it: then also in what it is a hard link of."""
    payload = bytearray(path.read_bytes())
    payload[len(payload) // 2] ^= 1
    if not in_place:
        path.unlink()
    path.write_bytes(payload)


def other_names(built: Built) -> list[Path]:
    """A hard link of every result: what is written into a result, and does not replace it, changes it."""
    made = []
    for stage in ("splits", "runs", "store/entries", "tables", "figures"):
        for path in sorted(path for path in (built.folder / "results" / stage).rglob("*") if path.is_file()):
            made.append(built.folder / "names" / str(len(made)))
            made[-1].parent.mkdir(exist_ok=True)
            os.link(path, made[-1])
    return made


def whole_entries(built: Built) -> int:
    """Of the store; none may be damaged."""
    paths = [*entries([built.folder / "results/store"])]
    assert all(map(read, paths))
    return len(paths)


def remove(built: Built, *names: str) -> None:
    for name in names:
        shutil.rmtree(built.folder / name)


def edit(built: Built, name: str, old: str, new: str) -> None:
    path = built.folder / name
    assert old in path.read_text(), (name, old)
    path.write_text(path.read_text().replace(old, new, 1))


def copied_without_times(built: Built) -> None:
    results = built.folder / "results"
    results.rename(built.folder / "old")
    subprocess.run(["cp", "-r", built.folder / "old", results], check=True)
    remove(built, ".snakemake", "old")


def shuffled(built: Built) -> None:
    paths = sorted((built.folder / "results").rglob("*"), key=lambda path: hashlib.sha256(str(path).encode()).digest())
    for second, path in enumerate(paths):
        os.utime(path, (10**9 + second, 10**9 + second))
    remove(built, ".snakemake")


def newer_clone(built: Built) -> None:
    """All sources get the current time, which is later than that of all results."""
    for name in ("src", "rules", "workflow", "config", "Snakefile"):
        for path in [built.folder / name, *(built.folder / name).rglob("*")]:
            os.utime(path)


def older_clone(built: Built) -> None:
    for path in (built.folder / "src").rglob("*.py"):
        os.utime(path, (10**9, 10**9))


def documented(built: Built) -> None:
    """The description of an option, a comment and a docstring change."""
    edit(built, "src/compositional/models/cnn.py", '"description": "', '"description": "in other words, ')
    edit(built, "src/compositional/kinds/image.py", '"""', '"""Once more. ')
    edit(built, "src/compositional/stages/evaluate.py", "from __future__", "# a comment\nfrom __future__")


def test_changes_that_affect_no_result_rerun_nothing(built):
    before = built.numbers()
    happens: list[Callable[[Built], None]] = [
        lambda built: None,
        lambda built: remove(built, ".snakemake"),
        documented,
        newer_clone,
        older_clone,
        lambda built: remove(built, "results/splits"),
        lambda built: remove(built, "results/store", "results/recipes"),
        copied_without_times,
        shuffled,
    ]
    for state in happens:
        state(built)
        assert built.exactly() == ({}, set()), state
    assert "Nothing to be done" in built.told(*built.targets)
    # Without splits, store and recipes, only the requested results are made.
    assert built.exactly("results/splits/digits_concat") == ({"split": 1}, set())
    assert built.exactly() == ({}, set())
    assert {name: digest for name, digest in before.items() if "splits/" not in name}.items() <= built.numbers().items()
    assert built.numbers()[ARROW] == before[ARROW]


def test_an_option_that_is_changed_back_takes_runs_from_the_store(built):
    before = built.numbers()
    built.configure(learning_rate=0.004)
    assert built.exactly() == (PACK, {run.removeprefix("results/runs/") for run in (RUN, OTHER)})
    assert "made again: 2 runs of digits_concat/cnn/none: learning_rate 0.001 -> 0.004" in built.said
    assert built.numbers() != before
    remove(built, ".snakemake")
    built.configure()
    assert built.exactly() == (PACK, set())  # from the store
    assert built.numbers() == before


def test_nothing_is_written_through_a_link(built):
    """What is made again, by other options, other code, for damage, and by a job that fails and leaves what was there."""
    before, names = built.numbers(), other_names(built)
    bytes_before = [path.read_bytes() for path in names]
    built.configure(learning_rate=0.004)
    source, old = "src/compositional/stages/train.py", "        self._write(run, state, facts)\n\n    def _folder"
    edit(built, source, old, f"        self._write(run, state, facts)\n        assert run.seed == 0\n{old.partition(chr(10))[2]}")
    assert "AssertionError" in built.told(*built.targets, succeeds=False)
    assert whole_entries(built) == 6
    edit(built, source, "        assert run.seed == 0\n", "")
    assert built.exactly()[1] == set()
    assert whole_entries(built) == 6
    built.configure()
    for name in (
        ARROW,
        f"{RUN}/weights.safetensors",
        f"{SIDE}/metrics.csv",
        f"{SCAN}/run.json",
        "results/tables/small.csv",
        SMALL,
    ):
        damage(built.folder / name)
    edit(built, "src/compositional/stages/split.py", "def perform(", "UNUSED = 1\n\n\ndef perform(")
    assert built.exactly()[1] == set()
    assert built.numbers() == before
    assert whole_entries(built) == 6
    assert [path.read_bytes() for path in names] == bytes_before


def test_snakemakes_own_records_do_not_matter(built):
    """Here the records are in a database, which exists or is deleted; in the test above they are in files."""
    options = ("--persistence-backend", "db")
    if options[0] not in built.told("--help"):
        pytest.skip("this Snakemake has no database for its records")
    made = {"train": 1, "evaluate": 1, "aggregate": 1, "plot": 1}
    built.configure(learning_rate=0.004)
    assert built.exactly(SMALL, options=options) == (made, {run.removeprefix("results/runs/") for run in (RUN, OTHER)})
    remove(built, ".snakemake")
    built.configure()
    assert built.exactly(SMALL, options=options) == (made, set())
    built.configure(learning_rate=0.004)
    assert built.exactly(SMALL, options=options) == (made, set())


@pytest.mark.parametrize(
    ("names", "expected", "trained"),
    [
        (
            [f"{RUN}/weights.safetensors", f"{SIDE}/history.csv", f"{SCAN}/run.json"],
            {"train": 3, "evaluate": 3, "aggregate": 2, "plot": 2},
            {RUN, SIDE, SCAN},
        ),
        (
            [ARROW, f"{SIDE}/metrics.csv", f"{SCAN}/predictions.csv"],
            {"split": 1, "train": 1, "evaluate": 3, "aggregate": 2, "plot": 2},
            set(),
        ),
        ([f"{SIDE}/evaluation.json", "results/tables/small.csv"], {"evaluate": 1, "aggregate": 2, "plot": 2}, set()),
        ([SMALL, "results/figures/whole.provenance.json"], {"plot": 2}, set()),
    ],
    ids=["what training makes", "what weights outlive", "what is measured", "figures"],
)
def test_damaged_results_are_made_again_and_trained_only_if_weights_are_lost(built, names, expected, trained):
    """There is no store. Files that are damaged together belong to different families, and each is made again separately."""
    before = built.numbers()
    remove(built, "results/store")
    for name in names:
        damage(built.folder / name)
    assert built.exactly() == (expected, {run.removeprefix("results/runs/") for run in trained})
    assert built.numbers() == before


def test_runs_in_the_store_are_not_trained_again(built):
    """Weights were damaged, and a record was edited, so that its digest of itself is wrong."""
    before = built.numbers()
    damage(built.folder / f"{RUN}/weights.safetensors")
    edit(built, f"{OTHER}/run.json", '"status": "done"', '"status": "diverged"')
    assert built.exactly() == (PACK, set())
    assert "made again: 1 run of digits_concat/cnn/none: no valid record belongs to the existing files" in built.said
    assert "weights.safetensors was altered or damaged after it was made" in built.said
    assert json.loads((built.folder / OTHER / "run.json").read_text())["status"] == "done"
    assert built.numbers() == before


def test_runs_on_changed_data_are_not_called_restored_although_the_store_has_runs_of_the_old_data(built):
    """A job that only restores takes no device and runs where Snakemake does."""
    changed = overlay()
    changed["tasks"]["digits_concat"]["train_pairs"] = 90
    built.overlay(changed)
    assert "Training 2 runs of digits_concat/cnn/none" in built.told("-n", SMALL)
    built.told("results/splits/digits_concat")
    assert "Training 2 runs of digits_concat/cnn/none" in built.told("-n", SMALL)
    built.configure()
    built.told("results/splits/digits_concat")
    damage(built.folder / f"{RUN}/weights.safetensors")
    assert "Restoring 2 runs of digits_concat/cnn/none" in built.told("-n", SMALL)


def test_where_one_file_is_the_store_s_too_its_run_alone_is_trained_again(built):
    before, path = built.numbers(), built.folder / f"{RUN}/weights.safetensors"
    (linked,) = {is_linked(path) for path in (built.folder / "results/runs").rglob("weights.safetensors")}
    damage(path, in_place=True)
    assert built.exactly() == (PACK, {RUN.removeprefix("results/runs/")} if linked else set())
    assert ("made, in place: so was each hard link of it, such as the store's" in built.said) == linked
    # Restoring takes no device, so such a job runs where Snakemake does.
    assert [f"{what} 2 runs of digits_concat/cnn/none" in built.said for what in ("Training", "Restoring")] == [
        linked,
        not linked,
    ]
    assert built.numbers() == before
    assert is_linked(path) == linked


def test_changed_writing_code_updates_existing_runs_without_training(built):
    """This holds with and without the store."""
    remove(built, "results/store")
    edit(built, "src/compositional/stages/train.py", '"raw_sha256": problem', '"more": 1, "raw_sha256": problem')
    everything = {"train": 3, "evaluate": 3, "aggregate": 2, "plot": 2}
    before = built.numbers()
    assert built.exactly() == (everything, set())
    assert "made again: 2 runs of digits_concat/cnn/none: the code that writes it" in built.said
    assert json.loads((built.folder / SIDE / "run.json").read_text())["more"] == 1
    edit(built, "src/compositional/stages/train.py", '"more": 1, "raw_sha256": problem', '"more": 2, "raw_sha256": problem')
    assert built.exactly(f"{SIDE}/run.json") == ({"train": 1}, set())
    assert json.loads((built.folder / SIDE / "run.json").read_text())["more"] == 2
    assert built.numbers() == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("training/reading.py", 'settings=family["settings"]', 'settings=family["settings"] | {"batch_size": 8}'),
        ("training/state.py", "fresh_state(problem, run.seed,", "fresh_state(problem, run.seed + 100,"),
    ],
)
def test_code_that_says_what_a_run_is_trained_on_is_part_of_its_identity(built, name, old, new):
    edit(built, f"src/compositional/{name}", old, new)
    one_figure = {"train": 1, "evaluate": 1, "aggregate": 1, "plot": 1}
    assert built.exactly(SMALL) == (one_figure, {run.removeprefix("results/runs/") for run in (RUN, OTHER)})


def test_a_history_that_evaluation_reads_is_checked_like_weights(built):
    """It is missing, and then altered without a trace in its time, while evaluation must be repeated for its code."""
    history, before = built.folder / RUN / "history.csv", built.numbers()
    history.unlink()
    edit(built, "src/compositional/stages/evaluate.py", "def perform(", "UNUSED = 1\n\n\ndef perform(")
    assert built.exactly(f"{RUN}/metrics.csv") == ({"train": 1, "evaluate": 1}, set())
    made = history.stat().st_mtime_ns
    damage(history)
    os.utime(history, ns=(made, made))
    edit(built, "src/compositional/stages/evaluate.py", "UNUSED = 1", "UNUSED = 2")
    assert "history.csv was altered or damaged after it was made" in built.told(f"{RUN}/metrics.csv", succeeds=False)
    assert built.exactly(f"{RUN}/metrics.csv") == ({"train": 1, "evaluate": 1}, set())
    assert {name: built.numbers()[name] for name in before if name.startswith(RUN)} == {
        name: digest for name, digest in before.items() if name.startswith(RUN)
    }


def test_another_release_of_a_dataset_is_downloaded_and_split_by_one_call(built):
    """First, the published file has another name; then the file of this name has other content."""
    examples, dataset = built.folder / "docs/examples", "src/compositional/datasets/my_colors.py"
    for folder in ("datasets", "tasks"):
        shutil.copy(examples / folder / "my_colors.py", built.folder / "src/compositional" / folder)
    mirror = {"COMPOSITIONAL_MIRROR": str(examples / "mirror")}
    published = examples / "mirror/my_colors/pairs.tsv"
    fetched = {"download": 1, "split": 1}
    assert built.exactly("results/splits/my_colors", **mirror)[0] == fetched
    published = published.rename(published.with_name("colors.tsv"))
    text = (built.folder / dataset).read_text().replace("pairs.tsv", "colors.tsv")
    (built.folder / dataset).write_text(text)
    assert built.exactly("results/splits/my_colors", **mirror)[0] == fetched
    old = files.sha256(published)
    lines = published.read_text().splitlines(keepends=True)
    published.write_text("".join([lines[-1], *lines[:-1]]))
    edit(built, dataset, old, files.sha256(published))
    assert built.exactly("results/splits/my_colors", **mirror)[0] == fetched


def of_another_release(built: Built, record: str) -> None:
    """Change a record as if it was made at another commit, with more entries in its recipe and with other writing code."""
    known = json.loads((built.folder / record).read_text())
    known["source"], known["of_old"] = {"commit": "0" * 40, "date": "", "dirty": False}, 1
    known["recipe"]["of_old"] = 1
    known["recipe"]["writing" if record.endswith("run.json") else "of_old"] = {"fingerprint": "of old"}
    known["recipe_digest"] = files.digest(known["recipe"])
    known.pop("self")
    files.write_json(built.folder / record, known | {"self": files.digest(known)})


@pytest.mark.parametrize("keeps", ["results/runs", "results/store"])
def test_results_of_another_release_are_reused_if_their_identity_is_the_same(built, keeps):
    """They come from runs without a store, or from a store without runs."""
    before = built.numbers()
    for path in sorted((built.folder / "results").rglob("*.json")):
        if path.name in ("run.json", "evaluation.json") or path.name.endswith(".provenance.json"):
            of_another_release(built, str(path.relative_to(built.folder)))
    remove(built, *({"results/runs", "results/store"} - {keeps}), "results/recipes", ".snakemake")
    assert built.exactly() == ({"split": 3, "train": 3, "evaluate": 3, "aggregate": 2, "plot": 2}, set())
    assert built.numbers() == before


def test_a_split_made_by_other_code_with_equal_content_trains_nothing(built):
    remove(built, "results/store")
    edit(built, "src/compositional/tasks/digits_concat.py", "def build(", "UNUSED = 1\n\n\ndef build(")
    jobs, trained = built.exactly(SMALL)
    assert (jobs, trained) == ({"split": 1, "train": 1, "evaluate": 1, "aggregate": 1, "plot": 1}, set())
    assert "made again: split digits_concat: its code" in built.said


def other_version(built: Built, library: str) -> str:
    """A folder for Python's path in which a library has another version."""
    about = built.folder / f"versions/{library}-99.0.dist-info/METADATA"
    about.parent.mkdir(parents=True)
    about.write_text(f"Metadata-Version: 2.1\nName: {library}\nVersion: 99.0\n")
    return str(built.folder / "versions")


def test_another_version_of_a_library_retrains_and_is_not_mixed_with_the_first(built):
    path = other_version(built, "torch")
    before = built.tree()
    jobs, trained = built.exactly(f"{RUN}/metrics.csv", PYTHONPATH=path, COMPOSITIONAL_PYTHONPATH=path)
    # Splits are drawn with this library, too.
    assert (jobs, trained) == ({"split": 1, "train": 1, "evaluate": 1}, {RUN.removeprefix("results/runs/")})
    assert 'torch "2.' in built.said
    changed = {name for name, now in built.tree().items() if before.get(name) != now}
    assert not [name for name in changed if name.startswith("results/runs") and not name.startswith(RUN)]
    refused(built)
    assert built.tree()["results/tables/small.csv"] == before["results/tables/small.csv"]


def refused(built: Built) -> None:
    """A call that was planned before must not make a table that includes a run made differently; its error names the run."""
    (recipe,) = (built.folder / "results/recipes").glob("aggregate_small__*.json")
    command = [sys.executable, "workflow/scripts/aggregate.py", str(recipe.relative_to(built.folder)), "log"]
    environment = os.environ | {"PYTHONPATH": str(built.folder / "src")}
    done = subprocess.run(command, cwd=built.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "made by other options, code or versions than planned" in done.stderr
    assert RUN in done.stderr
    assert OTHER not in done.stderr


def other_code(built: Built) -> None:
    edit(built, "src/compositional/models/cnn.py", "def forward(", "UNUSED = 1\n\n\ndef forward(")


def other_data(built: Built) -> None:
    changed = overlay()
    changed["tasks"]["digits_concat"]["train_pairs"] = 90
    built.overlay(changed)


@pytest.mark.parametrize("happens", [other_code, other_data, lambda built: built.configure(learning_rate=0.004)])
def test_no_table_is_made_from_runs_with_different_code_data_or_options(built, happens):
    before = built.tree()
    happens(built)
    built.told(f"{RUN}/metrics.csv")
    refused(built)
    after = built.tree()
    assert after[f"{RUN}/run.json"] != before[f"{RUN}/run.json"]
    assert after["results/tables/small.csv"] == before["results/tables/small.csv"]


def test_a_call_for_one_run_leaves_every_other_file_alone(built):
    built.configure(learning_rate=0.004)
    before, target = built.tree(), f"{RUN}/metrics.csv"
    assert jobs(built.told(target, "-n")) == jobs(built.told(f"./{target}", "-n"))
    assert built.exactly(f"./{target}") == ({"train": 1, "evaluate": 1}, {RUN.removeprefix("results/runs/")})
    now = built.tree()
    made = (RUN, "results/store", "results/recipes", "results/logs", "results/progress")
    assert {name: now.get(name) for name in before if not name.startswith(made)} == {
        name: value for name, value in before.items() if not name.startswith(made)
    }
    # Its neighbor stays outdated until it is requested.
    assert built.exactly() == (PACK, {OTHER.removeprefix("results/runs/")})


def test_adding_and_removing_runs_keeps_the_others(built):
    before = built.tree()
    more = overlay()
    more["studies"]["compositional_regularization"]["figures"]["small"]["grids"][0]["seeds"] = [0, 1, 2]
    built.overlay(more)
    assert built.exactly(SMALL) == (
        {"train": 1, "evaluate": 1, "aggregate": 1, "plot": 1},
        {f"{DIGITS}2".removeprefix("results/runs/")},
    )
    now = built.tree()
    assert all(now[name] == value for name, value in before.items() if name.startswith("results/runs"))
    built.configure()
    assert built.exactly(SMALL) == ({"aggregate": 1, "plot": 1}, set())
    assert "made again: table small: 1 run removed" in built.said


def test_measured_pack_sizes_change_new_packs_and_train_nothing_again(built):
    """Runs of two new seeds, one run to a pack; the two finished runs stay in their pack of two."""
    where = [pack_sizes.machine(), "digits_concat", "cnn", "none"]
    files.write_csv(built.folder / "results" / pack_sizes.OWN, pack_sizes.COLUMNS, [[*where, 1, 5, 100], [*where, 2, 7, 100]])
    assert built.exactly(SMALL, WHOLE) == ({}, set())
    more = overlay()
    more["studies"]["compositional_regularization"]["figures"]["small"]["grids"][0]["seeds"] = [0, 1, 2, 3]
    built.overlay(more)
    new = {f"{DIGITS}{seed}".removeprefix("results/runs/") for seed in (2, 3)}
    assert built.exactly(SMALL) == ({"train": 2, "evaluate": 2, "aggregate": 1, "plot": 1}, new)


# `-D` and `--filegraph` go the way of `--summary` and `--dag`; `exactly` makes dry runs.
LOOKS = [
    *(["--summary"], ["--dag"], ["--rulegraph"], ["--lint"], ["--list-rules"], ["--unlock"], ["--list-target-rules"]),
    *(["--list-changes", "params"], ["--touch"]),
]
# Calls that only read results or Snakemake's records of them.
OF_RESULTS = [["--summary"], ["--dag"], ["--unlock"], ["--touch"]]
OVERLAYS = "['tests/support/tiny.yaml', 'overlay.yaml']"
# Of all figures: no target is named.
BY_MAIN = f"from snakemake.cli import main\ntry: main(['-nc1', '--configfile', *{OVERLAYS}])\nexcept SystemExit: pass"
BY_API = (
    "from pathlib import Path\nfrom snakemake.api import SnakemakeApi\nfrom snakemake.settings.types import *\n"
    "with SnakemakeApi(OutputSettings()) as api:\n"
    f"  files = [Path(name) for name in {OVERLAYS}]\n"
    "  w = api.workflow(ResourceSettings(cores=1), ConfigSettings(configfiles=files), snakefile=Path('Snakefile'))\n"
    f"  w.dag(DAGSettings(targets={{'{SMALL}'}})).execute_workflow(executor='dryrun')"
)


@pytest.mark.parametrize(
    ("memory", "looks", "program"), [(True, LOOKS, BY_MAIN), (False, OF_RESULTS, BY_API)], ids=["with .snakemake", "without"]
)
def test_read_only_calls_change_nothing(built, memory, looks, program):
    built.configure(learning_rate=0.004)
    damage(built.folder / f"{SIDE}/metrics.csv")
    remove(built, "results/splits", *([] if memory else [".snakemake"]))
    before = built.tree()
    for look in [*([SMALL, WHOLE, *look] for look in looks), ["results/figures/smal.pdf"]]:
        done = built.call(*look, overlay="overlay.yaml")
        assert built.tree() == before, look
        assert (done.returncode != 0) == (look[-1] in ("results/figures/smal.pdf", "--touch")), (look, done.stderr)
        if look[-1] == "--touch":
            assert "--touch changes nothing here: a result's record decides whether it is out of date" in done.stderr
    command = [sys.executable, "-c", program, "--study", "results/figures/unknown.pdf"]
    done = subprocess.run(command, cwd=built.folder, capture_output=True, text=True, check=False)
    assert built.tree() == before
    assert "train_digits_concat__cnn__none" in done.stdout + done.stderr, done.stderr


def test_a_second_call_in_one_process_sees_what_was_edited_since_the_first(built):
    """A notebook makes several calls."""
    program = (
        f"import sys\nfrom pathlib import Path\nfrom snakemake.cli import main\ncode = Path('src/compositional/models/cnn.py')\n"
        f"for text in (code.read_text(), code.read_text().replace('def forward', 'OTHER = 1\\n\\n\\ndef forward')):\n"
        f"  code.write_text(text)\n  print('CALL', flush=True)\n"
        f"  try: main(['-n', '{SMALL}', '--configfile', *{OVERLAYS}])\n  except SystemExit: pass\n  sys.stderr.flush()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=built.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    _, first, second = done.stdout.split("CALL\n")
    assert "Nothing to be done" in first
    assert "train_digits_concat__cnn__none" in second, done.stdout


def remote(built: Built, name: str) -> subprocess.CompletedProcess:
    """Run a job like executors do that submit jobs to other machines."""
    words = ["--snakefile", "Snakefile", "--target-jobs", f"{name}:"]
    words += ["--allowed-rules", name, "--cores", "1", "--attempt", "1", "--force-use-threads", "--force", "--nolock"]
    words += ["--ignore-incomplete", "--no-hooks", "--mode", "remote", "--rerun-triggers", "mtime", "params", "code", "input"]
    words += ["--shared-fs-usage", "input-output", "persistence", "sources", "source-cache", "--latency-wait", "2"]
    return call([*words, "--configfile", "tests/support/tiny.yaml", "overlay.yaml"], built.folder)


def test_jobs_that_wait_compute_what_was_planned_or_stop(built):
    """Options, packs and code are edited between planning and computing, and another call runs in the meantime."""
    before = built.numbers()
    names = [
        path.stem
        for stage in ("train", "evaluate")
        for path in (built.folder / "results/recipes").glob(f"{stage}_digits_concat__*")
    ]
    assert len(names) == 2
    remove(built, "results/store", "results/runs/digits_concat")
    changed = overlay(learning_rate=0.004) | {"pack_size": {"cpu": {"default": 1}}}
    changed["tasks"]["digits_concat"]["test_pairs"] = 30
    built.overlay(changed)
    for name in names:
        done = remote(built, name)
        assert done.returncode == 0, done.stderr
    built.configure()
    assert built.exactly() == ({}, set())
    assert built.numbers() == before
    # In between, another call makes the same runs with other options: the evaluation of the first call reports this.
    built.configure(learning_rate=0.004)
    built.told(f"{RUN}/run.json")
    done = remote(built, names[1])
    assert done.returncode
    assert f"made by other options, code or versions than planned: {RUN}/run.json." in done.stderr
    edit(built, "src/compositional/models/cnn.py", "def forward(", "UNUSED = 1\n\n\ndef forward(")
    done = remote(built, names[0])
    assert done.returncode
    assert "the code has changed since this build began" in done.stderr


def test_simultaneous_calls_do_not_disturb_each_other(built):
    remove(built, "results/store")
    built.configure(learning_rate=0.004)
    targets = [f"{RUN}/metrics.csv", f"{OTHER}/metrics.csv", f"{SIDE}/metrics.csv"]
    damage(built.folder / f"{SIDE}/weights.safetensors")
    running = [
        subprocess.Popen(
            built.command(target, overlay="overlay.yaml"),
            cwd=built.folder,
            env=os.environ | jobs_as_forks(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for target in targets
    ]
    for process in running:
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0, output
    # "set of input files has changed": a pack of two runs was made as two packs.
    jobs, trained = built.exactly()
    assert (jobs["train"], trained) == (0, set())


def test_snakemakes_options_for_parts_of_a_build_work(built):
    """--until, --batch, -R, --no-hooks, --groups, --retries."""
    before = built.tree()
    assert rules(built.told(SMALL, "-R", "plot", "-n")) == [("plot", 1)]
    output = built.told("-R", "plot", SMALL, succeeds=False)  # Snakemake takes this as the target all and two names to force
    assert f"although it names only {SMALL}. Snakemake reads the words after an option" in output
    assert "MissingInput" not in output
    output = built.told(SMALL, "--replace-workflow-config", succeeds=False)  # the file is not a complete configuration
    assert "The configuration is wrong" in output
    assert built.tree() == before
    built.configure(learning_rate=0.004)
    train = next(name for name, _ in rules(built.told(SMALL, "-n")) if name.startswith("train"))
    assert [name for name, _ in rules(built.told(SMALL, "--until", train))] == [train]
    parts = [rules(built.told(SMALL, "--batch", f"aggregate={part}/2")) for part in (1, 2)]
    stages = [[name.partition("_")[0] for name, _ in part] for part in parts]
    assert stages == [["evaluate"], ["aggregate", "plot"]]
    assert built.exactly(SMALL) == ({}, set())
    built.configure(learning_rate=0.002)
    output = built.told(SMALL, "--no-hooks", succeeds=False)
    assert "does not exist. Snakemake's main process writes it when a build starts (but not with --no-hooks)" in output
    before = built.numbers()
    built.configure(learning_rate=0.004)
    assert built.exactly(SMALL) == ({}, set())
    # Forced jobs are repeated with the same bytes, and nothing is trained; missing inputs are made.
    for path in (built.folder / "results").glob("*s/small*"):
        path.unlink()
    output = built.told(SMALL, "-R", train)
    assert "Restoring 2 runs" in output
    assert built.numbers() == before
    built.configure(learning_rate=0.002)
    pair = [name for name, _ in rules(built.told(SMALL, "-n")) if name.startswith(("train", "evaluate"))]
    built.told(SMALL, "--groups", *(f"{name}=together" for name in pair))
    assert built.exactly(SMALL) == ({}, set())
    # A job fails once, like on a failing node: its entry in the store cannot be read as a folder.
    built.configure(learning_rate=0.001)
    shutil.rmtree(built.folder / "results/store")
    (built.folder / "results/store").write_text("in the way")
    output = built.told(SMALL, "--retries", "1", succeeds=False)
    assert "Trying to restart job" in output
    (built.folder / "results/store").unlink()
    assert built.exactly(SMALL, options=("--retries", "1"))[0] == PACK | {"aggregate": 1, "plot": 1}


@pytest.mark.parametrize(("name", "again"), [("run.json", PACK), ("evaluation.json", {"evaluate": 1})])
def test_no_table_is_made_from_runs_of_different_devices(built, name, again):
    """The error names the runs. If the configuration names a device, what was made on other devices is made again."""
    built.overlay(overlay() | {"device": "auto"})
    path = built.folder / RUN / name
    record = json.loads(path.read_text()) | {"device": "cuda"}
    record.pop("self")
    files.write_json(path, record | {"self": files.digest(record)})
    for made in (built.folder / "results").glob("*s/small*"):
        made.unlink()
    output = built.told(SMALL, succeeds=False)
    named = [run.removeprefix("results/runs/") for run in (OTHER, RUN)]
    assert f"on different devices: on cpu {named[0]}; on cuda {named[1]}. A table must not mix them" in output
    assert not (built.folder / "results/tables/small.csv").exists()
    built.configure()
    assert built.exactly(SMALL)[0] == again | {"aggregate": 1, "plot": 1}
    assert "device cuda -> cpu" in built.said


def test_the_results_folder_may_be_elsewhere(base, tmp_path):
    results = base.folder / "results"
    shutil.copytree(results, tmp_path / "results")
    for profile in ([], ["--profile", "slurm"]):
        assert "Nothing to be done" in base.told(SMALL, "--directory", str(tmp_path), *profile)


def test_a_failed_job_removes_no_file_of_another_call(built):
    """A file that is left without a record is made again."""
    path = built.folder / RUN / "metrics.csv"
    kept, script = path.read_bytes(), "workflow/scripts/evaluate.py"
    for name in ("metrics.csv", "evaluation.json"):
        path.with_name(name).unlink()
    fails = f'from pathlib import Path\nPath("{RUN}/metrics.csv").write_text("theirs")\nraise SystemExit(1)\n'
    edit(built, script, '"""', f'{fails}"""')
    assert "Removing" not in built.told(f"{RUN}/metrics.csv", succeeds=False)
    assert path.read_text() == "theirs"
    edit(built, script, "raise SystemExit(1)", "")
    built.told(f"{RUN}/metrics.csv")
    assert path.read_bytes() == kept


def test_a_job_that_fails_leaves_the_version_of_before(built):
    """The split, table and figure stay, and count as out of date until the fault is gone."""

    def kept() -> dict[str, tuple]:
        stages = ("results/splits", "results/tables", "results/figures")
        return {name: found for name, found in built.tree(times=False).items() if name.startswith(stages)}

    before = kept()
    for module, definition, target in (
        ("tasks/shared/side_by_side.py", "def build(", "splits/digits_concat"),
        ("stages/aggregate.py", "def perform(", SMALL.removeprefix("results/")),
        ("figures/ablation.py", "def draw(", SMALL.removeprefix("results/")),
    ):
        path = f"src/compositional/{module}"
        edit(built, path, definition, f"boom = 1 / 0\n\n\n{definition}")
        assert "ZeroDivisionError" in built.told(f"results/{target}", succeeds=False)
        assert kept() == before
        edit(built, path, f"boom = 1 / 0\n\n\n{definition}", definition)
    assert built.exactly() == ({}, set())


def test_what_snakemake_remembers_of_other_results_does_not_matter(built):
    """Results that are put back after another configuration was built are up to date."""
    shutil.copytree(built.folder / "results", built.folder / "kept", symlinks=True)
    built.configure(learning_rate=0.004)
    built.told(SMALL)
    shutil.rmtree(built.folder / "results")
    (built.folder / "kept").rename(built.folder / "results")
    built.configure()
    assert built.exactly() == ({}, set())


def test_predictions_can_be_requested_like_any_other_result(built):
    (built.folder / SCAN / "predictions.csv").unlink()
    assert built.exactly() == ({}, set())
    assert built.exactly(f"{SCAN}/predictions.csv") == ({"evaluate": 1}, set())


def test_an_unsupported_snakemake_is_refused(built):
    """Whatever it lacks, nothing runs, and a message states why."""
    before = built.tree()
    rules_ = (built.folder / "rules/common.smk").read_text()
    names = re.findall(r'of_snakemake\("([a-z_.]+)"\)', rules_)
    assert {*names} >= {"is_main_process", "dag.forcefiles"}
    built.configure(learning_rate=0.004)
    # The number of cores is only determined if a call does not state it.
    for name in sorted({*names} - {"register_resource"}):
        (built.folder / "rules/common.smk").write_text(rules_.replace(f'of_snakemake("{name}")', f'of_snakemake("{name}_gone")'))
        output = built.told(SMALL, succeeds=False)
        assert f"This Snakemake has no workflow.{name}_gone" in output
        assert built.tree() == before
