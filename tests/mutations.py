"""Small changes to the code that the tests must notice: python tests/mutations.py [part of a name]

Each change is made to a copy of the project, and the tests named with it are run: one of them must fail. The result is a table,
as in docs/testing.md; the exit status is 1 if a change went unnoticed. Not a part of `make test`: it takes minutes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.project import Project

LIBRARY = "src/compositional/"
TRAINING, STORE = "tests/unit/training/test_training.py::", "tests/unit/records/test_store.py::"
SURROUNDINGS = "tests/unit/records/test_surroundings.py"
KILLED = f"{TRAINING}test_a_killed_job_goes_on_from_its_last_checkpoint_with_all_its_runs"
WRITTEN = (Path(__file__).parents[1] / LIBRARY / "stages/train.py").read_text(encoding="utf-8")
CURVES, DESCRIBED, RECORD = re.search(
    r'(    files\.write_csv\(folder / "history.*?\n)(    described = .*?)(    provenance\.write\(folder / "run.*?\n)',
    WRITTEN,
    re.DOTALL,
).groups()
# By the fault that the change causes: the file, its text, the new text, and the tests of which one must fail.
MUTATIONS = {
    "a gradient's norm is not checked for NaN": (
        *("training/pack.py", " & torch.isfinite(norm)", ""),
        f"{TRAINING}test_a_run_whose_gradient_is_not_finite_has_diverged_though_its_loss_is_finite",
    ),
    "lambda has the other sign": (
        *("training/pack.py", "task_loss + self.strength", "task_loss - self.strength"),
        f"{TRAINING}test_a_larger_lambda_makes_the_penalty_smaller",
    ),
    "first weights do not depend on the seed": (
        *("training/problem.py", 'problem.model_name, seed, "initialization"', 'problem.model_name, "initialization"'),
        "tests/unit/models/test_contract.py::test_the_seed_and_the_task_decide_the_weights_that_a_run_begins_with",
    ),
    "raw files are not checked before a split is made": (
        *("stages/split.py", "        download.verify(implementation.DATASET, raw / name)", "        pass"),
        "tests/unit/stages/test_split.py::test_raw_files_are_checked_before_a_task_is_built_from_them",
    ),
    "a decoder may see later target symbols": (
        *("training/guards.py", "    check_order(problem, ", "    (lambda *_: None)(problem, "),
        "tests/unit/training/test_networks.py::test_a_decoder_that_sees_later_target_symbols_is_refused",
    ),
    "all hypotheses of a beam continue from the same past": (
        *("evaluation/decoding.py", "values[of_run, parent]", "values"),
        "tests/studies/test_language.py::test_every_hypothesis_of_a_beam_keeps_its_own_past",
    ),
    "a network may change its input": (
        *("training/effects.py", "if changed := different(before, tensors):", "if changed := []:"),
        "tests/unit/training/test_networks.py::test_an_ordinary_module_that_would_not_train_as_in_pytorch_is_refused",
    ),
    "runs may mix through the first run": (
        *("training/guards.py", "    if twins:\n        _check_alone(", "    if False:\n        _check_alone("),
        "tests/unit/training/test_guards.py::test_a_penalty_that_mixes_runs_is_refused",
    ),
    "a test set may be compared by other columns than models see": (
        *("stages/shared/task_checks.py", 'seen = declared["INPUTS"] or ', "seen = "),
        "tests/unit/stages/test_split.py::test_the_return_values_of_a_task_are_checked",
    ),
    "an edited recipe is followed": (
        *("records/places.py", "if not path.stem.endswith(", "if False and path.stem.endswith("),
        "tests/unit/planning/test_plan.py::test_the_start_of_a_build_writes_the_recipes_of_its_jobs",
    ),
    "a representation shares its memory with what follows": (
        *("training/networks.py", ".squeeze(0).clone()", ".squeeze(0)"),
        "tests/unit/training/test_networks.py::test_a_representation_is_what_its_submodule_gives_even_if_it_is_changed_in_place_afterwards",
    ),
    "a task need not name its test set": (
        *("stages/shared/task_checks.py", 'if "test" in members and not any(', 'if "test" in members and any('),
        "tests/unit/stages/test_split.py::test_the_return_values_of_a_task_are_checked",
    ),
    "a caption needs every method on every task": (
        *("figures/readings.py", "            if own.empty:\n                continue\n", ""),
        "tests/unit/figures/test_configured.py",
    ),
    "the report escapes nothing": (
        *("stages/report.py", "autoescape=True", "autoescape=False"),
        "tests/unit/stages/test_report.py",
    ),
    "the commit counts as a part of what lasts": (
        *("records/provenance.py", '"self", "source", "wall_seconds"', '"self", "wall_seconds"'),
        "tests/unit/records/test_integrity.py",
    ),
    "a run's record is written before its curves": (
        *("stages/train.py", f"{CURVES}{DESCRIBED}{RECORD}", f"{DESCRIBED}{RECORD}{CURVES}"),
        KILLED,
    ),
    "a record is written where a job fails": (
        *(
            "records/provenance.py",
            "    yield record\n    record |=",
            "    try:\n        yield record\n    finally:\n        write(path, record, recipe, [])\n    record |=",
        ),
        "tests/unit/records/test_integrity.py",
    ),
    "a finished run keeps its checkpoint": (
        *(
            "records/store.py",
            "        self._checkpoint(name).unlink(missing_ok=True)\n        return refused",
            "        return refused",
        ),
        f"{STORE}test_a_finished_run_has_no_checkpoint",
    ),
    "a finished entry is replaced": (
        *("stages/train.py", "if (entry := self.store.load(name_of(identity))) and", "if (entry := None) and"),
        KILLED,
    ),
    "an altered checkpoint counts as whole": (
        *("records/store.py", 'save(tensors, {"state"', 'save({}, {"state"'),
        f"{STORE}test_a_checkpoint_that_is_not_what_was_kept_counts_as_absent",
    ),
    "an altered entry counts as whole": (
        *("records/store.py", 'held.pop("sha256") == files.digest(held) and', 'held.pop("sha256") and'),
        f"{STORE}test_an_entry_that_is_not_what_was_kept_counts_as_absent",
    ),
    "altered weights count as an entry's": (
        *("records/store.py", "whole = hashlib.sha256(payload).hexdigest() == held", "whole = bool(payload) and held"),
        f"{STORE}test_an_entry_that_is_not_what_was_kept_counts_as_absent",
    ),
    "weights that may be shared are copied": (
        *("records/links.py", "if len(modes) == 1 and", "if False and"),
        "tests/unit/records/test_links.py::test_weights_are_one_file_with_two_names",
    ),
    "a folder is replaced with old files left in it": (
        *(
            "files.py",
            "            os.replace(path, earlier)\n        os.replace(temporary, path)",
            "            pass\n        shutil.copytree(temporary, path, dirs_exist_ok=True)",
        ),
        "tests/unit/test_files.py",
    ),
    "an edited record vouches for itself": (
        *("records/provenance.py", "own == files.digest(record) and", "own and"),
        "tests/unit/records/test_integrity.py",
    ),
    "another run's entry counts as this one's": (
        *("records/store.py", ' and held["key"] == entry.stem', ""),
        f"{STORE}test_files_that_were_exchanged_count_as_absent",
    ),
    "the manifest does not look at raw files": (
        *("archive/bundle.py", "if digest != made_of.get", "if False and made_of.get"),
        "tests/unit/archive/test_bundle.py",
    ),
    "the manifest does not look into folders": (
        *("archive/bundle.py", "damaged(record, known, everything=True)", "damaged(record, known)"),
        "tests/unit/archive/test_bundle.py",
    ),
    "a variable of the user reaches jobs": (
        *("records/surroundings.py", '"NUMBA_", ', ""),
        SURROUNDINGS,
    ),
    "Python's own variables reach jobs": (
        *("records/surroundings.py", '"MPL", "PYTHON")', '"MPL")'),
        SURROUNDINGS,
    ),
    "the user's site packages reach jobs": (
        *("records/surroundings.py", '    "PYTHONNOUSERSITE": "1",\n', ""),
        SURROUNDINGS,
    ),
    "git heeds what a hook exports": (
        *("records/surroundings.py", 'not name.startswith("GIT_")', "True"),
        SURROUNDINGS,
    ),
    "a record without a commit does not warn": (
        *("records/provenance.py", "return None if source() or", "return None if True or"),
        SURROUNDINGS,
    ),
    "a file ignores the umask": (
        *("files.py", "temporary.touch(exist_ok=False)", "temporary.touch(exist_ok=False), temporary.chmod(0o644)"),
        SURROUNDINGS,
    ),
    "a container's quota does not count": (
        *("records/surroundings.py", "min(quotas)", "quotas[0]"),
        SURROUNDINGS,
    ),
    "a name that pandas knows is missing": (
        *("tables/shared/reading.py", "keep_default_na=False", "keep_default_na=True"),
        "tests/unit/tables/test_reading.py",
    ),
    "a stranger's manifest may have any form": (
        *("archive/unpacking.py", "if wrong := _misfit(built):", "if wrong := None:"),
        "tests/unit/archive/test_unpacking.py",
    ),
    "a figure may ask for any number of runs": (
        *("configuration/series.py", "if (count := _runs(grid, members)) > LARGEST:", "if False:"),
        "tests/unit/configuration/test_configuration.py",
    ),
    "a download has no limit": (
        *("stages/download.py", "    if size > largest:", "    if False:"),
        "tests/unit/stages/test_download.py",
    ),
    "a download that is said to be too large begins": (
        *("stages/download.py", 'response.headers.get("Content-Length", 0)', "0"),
        "tests/unit/stages/test_download.py",
    ),
    "a server that fails is asked once": (
        *("stages/download.py", "if failed == ATTEMPTS or", "if True or"),
        "tests/unit/stages/test_download.py",
    ),
}


def tested(folder: Path, *tests: str) -> tuple[bool, str]:
    """Whether tests pass in a copy of the project, and the last line of pytest's output."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    lines = done.stdout.strip().splitlines() or [done.stderr]
    if done.returncode not in (0, 1):  # no test was found, or none could be run
        sys.exit("\n".join(lines[-20:]))
    failed = [re.split(r"[ \[]", line.split("::", 1)[1])[0] for line in lines if line.startswith("FAILED") and "::" in line]
    return done.returncode == 0, failed[0] if failed else lines[-1]


def main() -> int:
    """Make each change, run its tests, and restore the text."""
    part = " ".join(sys.argv[1:])
    chosen = {name: mutation for name, mutation in MUTATIONS.items() if part in name}
    if not chosen:  # pytest would run every test
        sys.exit(f"no change has {part!r} in its name: docs/testing.md lists all names")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        Project(folder)
        passed, said = tested(folder, *sorted({test for *_, test in chosen.values()}))
        if not passed:
            print(f"the tests fail without any change: {said}")
            return 1
        unnoticed = 0
        print("| change | noticed by |\n| --- | --- |")
        for name, (file, text, instead, test) in chosen.items():
            path = folder / LIBRARY / file
            whole = path.read_text(encoding="utf-8")
            if whole.count(text) != 1:
                sys.exit(f"{name}: {file} has {text!r} {whole.count(text)} times, must have it once")
            path.write_text(whole.replace(text, instead), encoding="utf-8")
            passed, said = tested(folder, test)
            path.write_text(whole, encoding="utf-8")
            unnoticed += passed
            print(f"| {name} | {'**nothing**' if passed else f'`{said}`'} |", flush=True)
    print(f"\n{len(chosen) - unnoticed} of {len(chosen)} changes are noticed, in {time.monotonic() - began:.0f} s")
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main())
