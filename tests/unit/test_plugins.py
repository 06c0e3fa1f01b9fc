"""Declarations of modules are read without importing them, and modules that break their folder's contract are refused."""

from __future__ import annotations

import re

import pytest

from compositional import plugins
from compositional.models import Model
from compositional.records.fingerprint import fingerprint

FOLDERS = ("datasets", "kinds", "tasks", "models", "regularizers", "figures")


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_module_keeps_its_contract(folder):
    assert plugins.contract(folder).required
    for name in plugins.available(folder):
        assert plugins.declarations(f"{folder}.{name}").keys() >= plugins.contract(folder).defaults.keys()


def test_a_description_contains_the_modules_definitions_and_defaults():
    from compositional.models import batchnorm_cnn, resnet18

    model = plugins.load(Model, "models.batchnorm_cnn")
    assert (model.forward, model.calibrate) == (batchnorm_cnn.forward, batchnorm_cnn.calibrate)
    assert (model.WIDTH, model.fit, model.buffers({}, {}, 0), model.describe({}, {}, 0)) == ({}, None, {}, [])
    assert plugins.load(Model, "models.resnet18").WIDTH is resnet18.WIDTH


def test_a_literal_that_a_module_does_not_declare_has_the_contracts_default(package):
    package("tasks.toy", "")
    assert plugins.declarations("tasks.toy") == {
        "KIND": (),
        "DATASET": (),
        "PARAMETERS": {},
        "PARALLEL": False,
        "BUILT_FROM": None,
    }


@pytest.mark.parametrize(
    ("folder", "name"), [(folder, name) for folder in FOLDERS for name in sorted(plugins.contract(folder).required)]
)
def test_missing_required_definitions_are_named(package, tmp_path, folder, name):
    package(f"{folder}.toy", "", without=name)
    see = re.escape(str(tmp_path / folder / "__init__.py"))
    with pytest.raises(ValueError, match=rf"{folder}/toy.py (defines|declares) no {name}: .*; see {see}"):
        plugins.declarations(f"{folder}.toy")


@pytest.mark.parametrize(
    ("module", "line", "near"),
    [
        ("regularizers.toy", "def prepair(parameters, split): ...", "prepare"),
        ("regularizers.toy", "PAIRD = True", "PAIRED"),
        ("models.toy", "WIDHT = {}", "WIDTH"),
        ("models.toy", "def calibrates(parameters, weights, batches): ...", "calibrate"),
        ("models.toy", "buffer = None", "buffers"),
        ("tasks.toy", "PARALEL: bool = True", "PARALLEL"),
        ("figures.toy", "ONE_MODELS = True", "ONE_MODEL"),
        ("datasets.toy", "class from_hubb: ...", "from_hub"),
    ],
)
def test_probable_misspellings_of_the_contract_are_refused(package, module, line, near):
    package(module, f"\n\n{line}\n")
    own = re.search(r"(?!def|class)\b\w+", line)[0]
    with pytest.raises(ValueError, match=rf"toy.py, line \d+: '{own}' is nothing that .*; did you mean '{near}'\? .* with _;"):
        plugins.declarations(module)


def test_a_misspelled_function_that_is_required_is_named_with_its_nearest_match(package):
    package("regularizers.toy", "def penalyt(step): ...\n", without="penalty")
    with pytest.raises(ValueError, match=r"'penalyt' is nothing that a module here defines; did you mean 'penalty'\?"):
        plugins.declarations("regularizers.toy")


def test_less_similar_names_are_also_suggested_for_a_missing_required_function(package):
    package("figures.toy", "def darw(table, options): ...\n", without="draw")
    with pytest.raises(ValueError, match=r"toy.py defines no draw \(is it 'darw', line 3\?\)"):
        plugins.declarations("figures.toy")


def test_helpers_with_other_names_are_allowed(package):
    """This includes a helper whose name resembles a name of the contract that the module also has, and an imported helper."""
    helpers = "from statistics import fmean as observed\n_buffer = 1\nSIZES = ()\nWIDTHS = ()\nWIDTH = {}\n"
    package("models.toy", f"{helpers}def initialize_encoder(): ...\ndef forwards(): ...\ndef _measur(): ...\nmeasures_of = 1\n")
    assert plugins.declarations("models.toy")["SIZES"] == ()


def test_an_optional_literal_must_be_a_literal(package):
    package("regularizers.toy", "PAIRED = bool(1)\n")
    with pytest.raises(ValueError, match=r"toy.py, line \d+: PAIRED is computed, and must be a literal"):
        plugins.declarations("regularizers.toy")


def test_declarations_can_be_copied_and_joined_from_other_modules(package, tmp_path):
    package("models.base", 'KIND = "image"\nPARAMETERS = {"width": {"default": 1}}\n')
    taken = f"from {tmp_path.name}.models import base as other\nKIND = other.KIND\nREPRESENTATIONS = other.REPRESENTATIONS\n"
    package("models.extended", taken + "PARAMETERS = other.PARAMETERS\n")
    joined = 'SHARED = {"depth": {"default": 2}}\nPARAMETERS = other.PARAMETERS | SHARED | {"width": {"default": 3}}\n'
    package("models.joined", taken + joined)
    package("models.computed", taken + "PARAMETERS = {**other.PARAMETERS}\n", without="PARAMETERS")
    assert plugins.declarations("models.extended") == plugins.declarations("models.base")
    assert list(plugins.defaults("models.joined").items()) == [("width", 3), ("depth", 2)]
    with pytest.raises(
        ValueError, match=r"computed.py declares no PARAMETERS \(line \d+: \{\*\*other.PARAMETERS\} is computed: write"
    ):
        plugins.declarations("models.computed")
    package("models.size", taken + joined.replace('"default": 3', '"default": 2**5'), without="PARAMETERS")
    with pytest.raises(
        ValueError, match=r"size.py declares no PARAMETERS \(line \d+: 2 \*\* 5 is computed: write .* must be a literal"
    ):
        plugins.declarations("models.size")


@pytest.mark.parametrize("name", ["regularizers.Toy", "tasks.of-two", "regularizers.none"])
def test_modules_with_names_that_no_result_can_have_are_refused(package, name):
    package(name, "")
    with pytest.raises(ValueError, match=rf"{name.split('.')[1]}.py: rename this module: a letter, then letters, digits and _"):
        plugins.available(name.split(".")[0])


def test_a_folder_with_the_name_of_a_module_is_refused(package):
    """Python imports the folder, and options and fingerprints are the file's."""
    package("models.toy", "")
    folder = plugins.module_path("models.toy").with_suffix("")
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    with pytest.raises(ValueError, match=r"toy.py: Python would import .*toy/__init__.py instead of it"):
        plugins.available("models")


@pytest.mark.parametrize("listed", ["REPRESENTATIONS", "APPLIES_TO"])
def test_a_string_instead_of_a_list_of_names_is_refused(package, listed):
    """It is not taken as a single name, because the module itself would iterate over its letters."""
    package("regularizers.toy", f'{listed} = ("image")\n')
    with pytest.raises(ValueError, match=rf"toy.py: {listed} = 'image' is text; .* \('image',\) with its comma"):
        plugins.declarations("regularizers.toy")


@pytest.mark.parametrize(
    ("source", "message"),
    [(b"WIDTH = 1\nKIND = \n", "models/cnn.py, line 2: invalid syntax"), (b'KIND = "\xe9"\n', "models/cnn.py, line 1: .*utf-8")],
)
def test_a_module_with_a_syntax_error_is_named(package, tmp_path, source, message):
    package("models.cnn", "")
    (tmp_path / "models/cnn.py").write_bytes(source)
    with pytest.raises(ValueError, match=message):
        plugins.declarations("models.cnn")
    with pytest.raises(ValueError, match=message):
        fingerprint(tmp_path / "models/cnn.py", root=tmp_path)


@pytest.mark.parametrize("source", ["class Network: ...", "class My: ...\nNetwork = My", "from other import Theirs as Network"])
def test_a_network_is_recognized_however_its_name_is_bound(package, source):
    package("models.toy", source)
    assert plugins.is_network("models.toy")
