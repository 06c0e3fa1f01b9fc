"""What modules declare is read without importing them, and what is no plug-in is refused."""

from __future__ import annotations

import pytest

from compositional import plugins
from compositional.records.fingerprint import fingerprint


def test_modules_without_a_declaration_are_refused(package, tmp_path):
    package("models.base", 'KIND = "image"\nREPRESENTATIONS = ("features",)\nPARAMETERS = {"width": {"default": 1}}\n')
    taken = f"from {tmp_path.name}.models import base as other\nKIND = other.KIND\nREPRESENTATIONS = other.REPRESENTATIONS\n"
    package("models.extended", taken + "PARAMETERS = other.PARAMETERS\n")
    joined = 'SHARED = {"depth": {"default": 2}}\nPARAMETERS = other.PARAMETERS | SHARED | {"width": {"default": 3}}\n'
    package("models.joined", taken + joined)
    package("models.computed", taken + "PARAMETERS = {**other.PARAMETERS}\n")
    assert plugins.declarations("models.extended") == plugins.declarations("models.base")
    assert list(plugins.defaults("models.joined").items()) == [("width", 3), ("depth", 2)]
    with pytest.raises(ValueError, match=r"computed.py declares no PARAMETERS: each must be a literal"):
        plugins.declarations("models.computed")


@pytest.mark.parametrize("name", ["regularizers.Toy", "tasks.of-two", "regularizers.none"])
def test_modules_of_which_no_result_can_have_the_name_are_refused(package, name):
    package(name, "")
    with pytest.raises(ValueError, match=rf"{name.split('.')[1]}.py: rename this module: a letter, then letters, digits and _"):
        plugins.available(name.split(".")[0])


@pytest.mark.parametrize("listed", ["REPRESENTATIONS", "APPLIES_TO"])
def test_a_text_where_names_are_listed_is_refused(package, listed):
    """Not taken for one name: the module itself would look into it letter by letter."""
    package("regularizers.toy", f'REPRESENTATIONS = ()\nAPPLIES_TO = ()\nPARAMETERS = {{}}\n{listed} = ("image")\n')
    with pytest.raises(ValueError, match=rf"toy.py: {listed} = 'image' is text; .* \('image',\) with its comma"):
        plugins.declarations("regularizers.toy")


@pytest.mark.parametrize(
    ("source", "message"),
    [(b"WIDTH = 1\nKIND = \n", "models/cnn.py, line 2: invalid syntax"), (b'KIND = "\xe9"\n', "models/cnn.py, line 1: .*utf-8")],
)
def test_a_module_that_is_no_python_is_named(package, tmp_path, source, message):
    package("models.cnn", "")
    (tmp_path / "models/cnn.py").write_bytes(source)
    with pytest.raises(ValueError, match=message):
        plugins.declarations("models.cnn")
    with pytest.raises(ValueError, match=message):
        fingerprint(tmp_path / "models/cnn.py", root=tmp_path)
