"""A fingerprint depends on the code of a module and of everything that it imports, and on nothing else."""

from __future__ import annotations

import ast
from importlib import metadata
from importlib.util import cache_from_source, find_spec
from pathlib import Path

import pytest
from support.configurations import PAPER, STUDIES, read

from compositional.configuration.configuration import Configuration
from compositional.plugins import declarations, module_path
from compositional.records import fingerprint as module
from compositional.runs import figure_runs

# Versions of Python parse these differently: the text of f-strings, empty fields, characters new in Unicode; and more.
EVERYTHING = r'''
from functools import cache

@cache
def describe(value, *rest, width: int = 8, **options) -> str:
    """Docstring."""
    if (found := options.get("found", {**options, None: ...})) and value is not None:
        print("both" f" {found!r:>{width}} {{braces}} " 'and' f'{value:.3f}{width}' f"{value = }" "")
    match value:
        case {"a": [1, *_], **others} | {"b": others}:
            return f"{others}"
        case None | True | -1.5:
            return f""
        case str(real=x) if x:
            pass
    try:
        return lambda a, /, b=1, *, c, d=2: [a for b in c if d]
    except* (ValueError, OSError) as errors:
        raise SystemExit from errors
    finally:
        del value


class Empty(Exception, metaclass=type):
    """Nothing else."""


async def go():
    async with a as b, c:
        yield b"\0\xff", "é\U0001fae8", 1_000j
'''


@pytest.fixture
def package(tmp_path):
    """A package with script -> middle -> deep, and an unrelated module."""
    root = tmp_path / "package"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "middle.py").write_text('"""Doc."""\nfrom package import deep\n\ndef f(x):\n    """Doc."""\n    return deep.g(x)\n')
    (root / "deep.py").write_text("def g(x):\n    return x + 1\n")
    (root / "unrelated.py").write_text("value = 1\n")
    (tmp_path / "script.py").write_text("from package.middle import f\nprint(f(1))\n")

    def compute() -> str:
        module._read.cache_clear()
        module.behind.cache_clear()
        module.fingerprint.cache_clear()
        return module.fingerprint(tmp_path / "script.py", root=root)

    return tmp_path, root, compute


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("deep.py", "x + 1", "x + 2", True),
        ("middle.py", "deep.g(x)", "deep.g(-x)", True),
        ("__init__.py", "", "import os", True),
        ("__init__.py", "", '"""Doc."""\n', False),
        ("deep.py", "x + 1", "x + 1  # why", False),
        ("middle.py", '    """Doc."""', '    """Another text."""', False),
        ("middle.py", '"""Doc."""\n', "", False),
        ("deep.py", "return x + 1", "return (x\n        + 1)", False),
        ("unrelated.py", "1", "2", False),
    ],
)
def test_a_fingerprint_changes_if_and_only_if_imported_code_changes(package, file, old, new, changes):
    _, root, compute = package
    before = compute()
    path = root / file
    path.write_text(path.read_text().replace(old, new, 1) if old else new)
    assert (compute() != before) == changes


@pytest.mark.parametrize("writes", [True, False])
def test_what_is_known_of_a_file_is_kept_where_bytecode_is(package, monkeypatch, writes):
    _, root, compute = package
    monkeypatch.setattr(module.sys, "dont_write_bytecode", not writes)
    first = compute()
    kept = Path(cache_from_source(root / "deep.py")).with_suffix(".json")
    assert kept.is_file() == writes
    if writes:
        monkeypatch.setattr(module, "parsed", None)
        assert compute() == first


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"valid_for": "0", "digest": "0", "imports": []}'])
def test_what_is_kept_of_other_code_is_not_used(package, monkeypatch, content):
    _, root, compute = package
    monkeypatch.setattr(module.sys, "dont_write_bytecode", False)
    first = compute()
    Path(cache_from_source(root / "deep.py")).with_suffix(".json").write_text(content)
    assert compute() == first
    (root / "deep.py").write_text("def g(x):\n    return x + 2\n")
    assert compute() != first


@pytest.mark.parametrize("line", ["from . import deep", "from .deep import g", "from ..package import deep"])
def test_relative_imports_count(package, line):
    _, root, compute = package
    (root / "middle.py").write_text(f"{line}\n")
    before = compute()
    (root / "deep.py").write_text("def g(x):\n    return x + 2\n")
    assert compute() != before


def test_the_same_code_elsewhere_has_the_same_fingerprint(package, tmp_path_factory):
    import shutil

    folder, root, compute = package
    other = tmp_path_factory.mktemp("other") / "clone"
    shutil.copytree(folder, other)
    assert compute() == module.fingerprint(other / "script.py", root=other / root.name)


def test_every_python_gives_the_same_fingerprint(tmp_path):
    path = tmp_path / "everything.py"
    path.write_text(EVERYTHING)
    assert module.fingerprint(path) == "929f44f3db573f6f7be3a1915a799c66cda1b6ad9d310243111784fcc2a7bb8c"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("f'a{b}' 'c'", "f'a' f'{b}c'", True),
        ("f'a{b}c'", "f'ac{b}'", False),
        ("f'{a}{b}'", "f'{a}b'", False),
        ("f'{a:b}'", "f'{a:{b}}'", False),
        ("{**a}", "{None: a}", False),
        ("lambda: (yield)", "lambda: (yield None)", False),
        ("a[b:]", "a[:b]", False),
        ("print(0)", "print()", False),
        ("0", "False", False),
        ("'é'", r"'\xe9'", True),
    ],
)
def test_joined_strings_equal_their_pieces_and_omitted_text_does_not(one, other, same):
    assert (module._dump(ast.parse(one), []) == module._dump(ast.parse(other), [])) == same


def modules_behind(*names):
    """The files of the package on which modules depend."""
    seen, pending = set(), [module_path(name) for name in names]
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending += module._read(path, module.PACKAGE)[1]
    return {path.relative_to(module.PACKAGE).as_posix() for path in seen}


@pytest.mark.parametrize("overlay", [[], PAPER])
def test_every_run_depends_on_the_code_that_reads_its_task(overlay):
    configuration = Configuration(read("config.yaml", *STUDIES, *overlay))
    families = {run.family for figure in configuration.figures.values() for run in figure_runs(figure)}
    kinds = {}
    for family in families:
        behind = modules_behind("training.loop", "evaluation.learning_curves", *configuration.modules(family))
        kinds[family] = declarations(configuration.module("tasks", family[0]))["KIND"]
        assert f"kinds/{kinds[family]}.py" in behind, family
        assert f"{configuration.module('models', family[1]).replace('.', '/')}.py" in behind
    assert len(set(kinds.values())) >= 6


def test_a_run_depends_on_its_own_regularizer_and_kind_only():
    numerics = modules_behind("training.loop", "evaluation.metrics", "models.cnn", "regularizers.entropy")
    assert {"training/pack.py", "layers/functional.py", "kinds/image.py", "regularizers/entropy.py"} <= numerics
    assert not {"regularizers/recombination.py", "kinds/sequence.py", "records/store.py", "figures/ablation.py"} & numerics


def test_kernel_machines_do_not_depend_on_measurements_of_networks():
    training = ("training.loop", "evaluation.learning_curves", "stages.shared.devices")
    numerics = modules_behind(*training, "models.kernel_machine", "kinds.combination")
    assert {"measures/kernels.py", "measures/additivity.py", "kinds/combination.py"} <= numerics
    measuring = {f"evaluation/{name}.py" for name in ("conjunctions", "stimuli", "activations")}
    assert not (measuring | {"kinds/sequence.py", "datasets/scan.py"}) & numerics


def test_a_fingerprint_ignores_descriptions_of_options_but_not_defaults(package):
    _, root, compute = package
    option = 'PARAMETERS = {{"rate": {{"default": {}, "description": "{}"}}}}\nTEXT = {{"description": "{}"}}\n'
    fingerprints = []
    for values in ((1, "a", "a"), (1, "b", "a"), (2, "a", "a"), (1, "a", "b")):
        (root / "deep.py").write_text(option.format(*values))
        fingerprints.append(compute())
    assert fingerprints[0] == fingerprints[1]
    assert len(set(fingerprints)) == 3


def test_the_identity_of_code_contains_the_versions_of_computing_libraries():
    libraries = module.code("training.loop", "kinds.image", "models.cnn")["libraries"]
    assert libraries["torch"] == metadata.version("torch").split("+")[0]
    assert "numpy" in libraries
    assert not {"datasets", "safetensors", "matplotlib", "json"} & libraries.keys()
    assert "scikit-learn" not in libraries
    assert module.code("datasets.digits")["libraries"]["sklearn"] == metadata.version("scikit-learn")
    assert "stitch_core" in module.code("tasks.raven_evolved")["libraries"]
    assert "numba" in module.code("models.lstm_attention")["libraries"]
    assert "torch" not in module.code("stages.plot", "figures.ablation")["libraries"]


def test_every_imported_library_has_a_known_version():
    """A library whose distribution is not found by its name would have no version, and all its versions would look the same."""
    paths = list(module.PACKAGE.rglob("*.py"))
    found = set().union(*(module._read(path, module.PACKAGE)[2] for path in paths)) - module.FILES_ONLY
    there = {name for name in found if find_spec(name)}
    assert [name for name in sorted(there) if module._version(name) is None] == []


@pytest.mark.parametrize(
    "line",
    [
        "import importlib\nimportlib.import_module(name)",
        "__import__(name)",
        "from importlib.util import spec_from_file_location\nspec_from_file_location(name, path)",
        "import runpy\nrunpy.run_path(path)",
        "exec(path.read_text())",
    ],
)
def test_a_plug_in_imports_nothing_by_its_name(package, line):
    folder, root, compute = package
    (root / "models").mkdir()
    (root / "models" / "wrapper.py").write_text(line)
    (folder / "script.py").write_text("from package.models import wrapper")
    with pytest.raises(ValueError, match=r"wrapper\.py, line \d: \w+ imports a module by its name or file"):
        compute()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("np.random.default_rng()", r"default_rng\(\) has no seed, .* Draw from compositional.randomness.generator\(key\)"),
        ("default_rng(seed=None)", r"default_rng\(\) has no seed"),
        ("np.random.Generator(np.random.PCG64())", r"PCG64\(\) has no seed"),
        ("np.random.RandomState()", r"RandomState\(\) has no seed"),
        ("random.Random()", r"Random\(\) has no seed"),
        ("torch.Generator().seed()", r"seed\(\) has no seed"),
        ("from os import urandom as noise", "urandom draws random numbers of the system"),
        ("uuid.uuid4().int", "uuid4 draws random numbers of the system"),
        ("import secrets", "secrets draws random numbers of the system"),
        ("default_rng(int(time.time()))", r"time\(\) is the time, .* use time.perf_counter\(\)"),
        ("datetime.now().year", r"now\(\) is the time"),
    ],
)
@pytest.mark.parametrize("room", ["models", "evaluation"])
def test_what_has_no_seed_is_refused_where_results_are_computed(package, room, line, complaint):
    """Each build would give other bytes, and nothing else notices all of it."""
    folder, root, compute = package
    (root / room).mkdir()
    imports = "import random, time, torch, uuid, numpy as np; from numpy.random import default_rng; from datetime import datetime"
    (root / room / "draws.py").write_text(f"{imports}\n{line}\n")
    (folder / "script.py").write_text(f"from package.{room} import draws")
    with pytest.raises(ValueError, match=rf"{room}/draws\.py, line 2: {complaint}"):
        compute()


def test_what_has_a_seed_may_be_drawn(package):
    folder, root, compute = package
    (root / "tasks").mkdir()
    seeded = (
        "default_rng(0)",
        "default_rng(seed)",
        "default_rng(seed=seed)",
        "Philox(key=3)",
        "RandomState(seed)",
        "Random(*seeds)",
        "torch.Generator()",
    )
    own = ("time.perf_counter()", "def seed():\n    return 3", "seed()", "self.time(x)", "secrets = x.now()")
    imports = "import random, time, torch\nfrom random import Random\nfrom numpy.random import Philox, RandomState, default_rng"
    (root / "tasks" / "draws.py").write_text("\n".join([imports, *seeded, *own]))
    (folder / "script.py").write_text("from package.tasks import draws")
    compute()


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("not_there", "which is not installed: install it, or put"),
        ("my_helper", "which belongs to no installed package, or to one"),
    ],
)
def test_an_import_whose_changes_would_go_unnoticed_is_refused(tmp_path, monkeypatch, name, refused):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_helper.py").touch()
    plugin = tmp_path / "plugin.py"
    plugin.write_text(f"import {name}\n")
    monkeypatch.setattr(module, "module_path", lambda _: plugin)
    with pytest.raises(ValueError, match=f"^{plugin} imports {name}, {refused}"):
        module.code("models.plugin")


def test_a_library_that_is_edited_in_its_own_folder_is_refused(tmp_path, monkeypatch):
    """`pip install -e`: its version stays the same, whatever is edited."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_library.py").touch()
    about = tmp_path / "my_library-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my_library\nVersion: 0.1\n")
    plugin = tmp_path / "plugin.py"
    plugin.write_text("import my_library\n")
    monkeypatch.setattr(module, "module_path", lambda _: plugin)
    for known in (module._version, module.code, module.installed):
        known.cache_clear()
    assert module.code("models.plugin")["libraries"] == {"my_library": "0.1"}
    for known in (module._version, module.code):
        known.cache_clear()
    (about / "direct_url.json").write_text('{"dir_info": {"editable": true}, "url": "file:///my_library"}')
    with pytest.raises(ValueError, match=r"imports my_library, .* installed with -e, so .* or install it without -e$"):
        module.code("models.plugin")
    module.installed.cache_clear()


def test_the_project_s_own_imports_are_found_without_listing_all_distributions(monkeypatch):
    """Listing them takes a quarter of a second of every call and job."""
    monkeypatch.setattr(module.metadata, "packages_distributions", lambda: pytest.fail("all distributions were listed"))
    for known in (module._version, module.code):
        known.cache_clear()
    assert "_typeshed" in module.code("stages.report", "stages.split", "training.loop")["libraries"]
