"""The architecture: floors as drawn, no import of a higher floor, short files, no module outside the rooms."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import networkx
import pytest

import compositional

ROOT = Path(__file__).parents[2]
ARCHITECTURE = runpy.run_path(str(ROOT / "docs" / "architecture.py"))
FLAT = {"__init__", "runs", "plugins", "files", "randomness"}
LONGEST = 300  # lines of a source file


def test_the_picture_is_drawn_from_today_s_imports():
    drawn = ARCHITECTURE["PICTURE"].read_text()
    assert drawn == ARCHITECTURE["picture"](), "docs/architecture.svg shows other imports than the code has: call make docs"
    for name in ARCHITECTURE["rooms"]():
        assert f">{name}</text>" in drawn


def test_no_room_imports_from_a_higher_floor():
    back = [
        f"{one} imports {other}"
        for group in ARCHITECTURE["cycles"]()
        for one, other in ARCHITECTURE["imports"]()
        if {ARCHITECTURE["room"](one), ARCHITECTURE["room"](other)} <= set(group) and one.split(".")[0] != other.split(".")[0]
    ]
    assert not back, "rooms import each other:\n" + "\n".join(back)


def test_no_modules_import_each_other():
    modules = networkx.DiGraph(ARCHITECTURE["imports"]())
    assert not [sorted(group) for group in networkx.strongly_connected_components(modules) if len(group) > 1]


def test_an_import_from_a_higher_floor_is_found(tmp_path, monkeypatch):
    """This includes imports within functions and by a package's name."""
    for name, source in {
        "__init__": "",
        "low/__init__": "",
        "low/one": "def late():\n    from compositional.high import two\n",
        "high/__init__": "",
        "high/two": "import compositional.low.one\n",
    }.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    monkeypatch.setitem(ARCHITECTURE["modules"].__globals__, "LIBRARY", tmp_path)
    assert ARCHITECTURE["imports"]() == [("high.two", "low.one"), ("low.one", "high.two")]
    assert ARCHITECTURE["cycles"]() == [["high", "low"]]


def test_plug_ins_share_code_only_in_shared():
    """A model, a regularizer or a kind may be a variant of another one, and import it."""
    folders = ("datasets", "tasks", "tables", "figures")
    others = {
        f"{path.parent.name}.{path.stem}" for folder in folders for path in (ARCHITECTURE["LIBRARY"] / folder).glob("[a-z]*.py")
    }
    found = [
        (one, other) for one, other in ARCHITECTURE["imports"]() if other in others and one.split(".")[0] == other.split(".")[0]
    ]
    assert not found, f"move what they share to the folder's shared/: {found}"


def test_no_unexpected_module_is_outside_the_rooms():
    assert {path.stem for path in ARCHITECTURE["LIBRARY"].glob("*.py")} == FLAT


def test_no_source_file_is_long():
    long = {str(path.relative_to(ROOT)) for path in ROOT.glob("src/**/*.py") if len(path.read_text().splitlines()) > LONGEST}
    assert not long, f"more than {LONGEST} lines: {sorted(long)}"


def scripts() -> dict[str, str]:
    return {path.stem: path.read_text() for path in (ROOT / "workflow" / "scripts").glob("*.py")}


@pytest.mark.parametrize("name", scripts())
def test_a_rule_its_script_and_its_stage_have_one_name(name):
    rules = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    assert f'"$COMPOSITIONAL_SCRIPTS/{name}.py" ' in rules
    if name not in ("archive", "manifest"):  # both are in rules/archive.smk, because the room `archive` makes their content
        assert (ROOT / "rules" / f"{name}.smk").exists() or name == "report"
        assert re.search(rf"from compositional\.stages(\.{name} import| import {name}\b)", scripts()[name])


def named() -> list[tuple[str, str]]:
    """Functions that docs/architecture.md names with their files: "`step` in `training/pack.py`"."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    return re.findall(r"`([\w.]+)` in\s+`([\w/]+\.py)`", page)


def test_the_page_answers_a_newcomers_questions():
    page = (ROOT / "docs" / "architecture.md").read_text()
    for question in (
        "batches of sentences made",
        "lambda enter the loss",
        "the learning rate reduced",
        "a record written",
        "a figure's interval computed",
    ):
        assert question in page
    assert len(named()) >= 5


@pytest.mark.parametrize(("function", "file"), named())
def test_functions_and_files_that_the_page_names_exist(function, file):
    source = (ARCHITECTURE["LIBRARY"] / file).read_text()
    assert re.search(rf"^ *(def|class) {function.split('.')[-1]}\b", source, re.MULTILINE), f"no {function} in {file}"


def test_modules_that_texts_name_exist():
    """Docstrings, comments, rules and pages name modules like "compositional.tasks.addition", or their functions."""
    known = {*ARCHITECTURE["modules"](), *compositional.OFFERED}
    folders = {name.rpartition(".")[0] for name in known}
    gone = []
    for path in [*ROOT.glob("src/**/*.py"), *ROOT.glob("rules/*.smk"), *ROOT.glob("docs/*.md"), ROOT / "config" / "README.md"]:
        for name in re.findall(r"\bcompositional((?:\.[a-z_]+)+)\b(?!/)", path.read_text()):
            module, _, last = name[1:].rpartition(".")
            if name[1:] not in known and (module not in known or (module in folders and not defines(module, last))):
                gone.append(f"{path.relative_to(ROOT)}: compositional{name}")
    assert not gone


def defines(package: str, name: str) -> bool:
    """Whether a folder's `__init__` defines a name."""
    return bool(re.search(rf"^(?:def|class) {name}\b|^{name}\b", ARCHITECTURE["modules"]()[package].read_text(), re.MULTILINE))


# Names of modules from before there were rooms, which do not fit the content of today's modules.
GONE = {
    *("calibration", "probes", "packed", "terms", "samples", "measurements", "labels", "pairs", "collectors", "crate", "curves"),
    *("mistakes", "symbolic", "sentences", "sequences", "images", "combinations", "tensors", "points", "puzzles"),
}


def test_no_module_has_an_old_name():
    assert not GONE & {path.stem for path in ARCHITECTURE["LIBRARY"].rglob("*.py")}
    for pattern in ("src/**/*.py", "tests/**/*.py", "benchmarks/*.py", "rules/*.smk"):
        for path in ROOT.glob(pattern):
            for module, alias in re.findall(r"^ *from (compositional\S*) import .* as (\w+)$", path.read_text(), re.MULTILINE):
                assert alias not in GONE, f"{path.relative_to(ROOT)} calls a module of {module} {alias}"


def test_the_tests_of_a_room_stand_in_its_folder():
    rooms = {path.name for path in ARCHITECTURE["LIBRARY"].iterdir() if [*path.glob("*.py")]}
    tested = {path.parent.name for path in (ROOT / "tests/unit").glob("*/test_*.py")}
    assert rooms == tested
