"""Fingerprints of code: of a module together with every module of the project that it imports.

A fingerprint changes if and only if the code does. Comments, docstrings, descriptions of options, layout, and modules that are
not imported have no effect. It is the same in every version of Python: jobs may use another version than the build (in
environments of their own), and an upgrade trains nothing again.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import metadata
from importlib.util import cache_from_source, find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from compositional.files import write_json
from compositional.plugins import PACKAGE, module_path, parsed
from compositional.records import forbidden
from compositional.records.provenance import installed

# Libraries that only read, write or download: another version of them gives the same numbers.
FILES_ONLY = {"datasets", "pyarrow", "requests", "safetensors"}
_DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Dict
_SELF = b"".join(Path(own).read_bytes() for own in (__file__, forbidden.__file__))
_FOR_TYPES = {"_typeshed"}  # only type checkers import it
DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn", "yaml": "PyYAML"}  # packages whose name differs from the module's


def _without_documentation(node: Any, name: str) -> Any:
    """A field of a node of _DOCUMENTED without docstrings and descriptions of options."""
    value: Any = getattr(node, name, None)
    if isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        place = keys.index("description") if {"default", "description"} <= set(keys) else len(keys)
        return value[:place] + value[place + 1 :]
    if name == "body" and ast.get_docstring(node, clean=False) is not None:
        return value[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
    return value


def _dump(node: object, nodes: list[ast.AST]) -> str:
    """Like ast.dump, but without documentation, and equal in all versions of Python, of which newer ones have additional empty
    fields. Every node is appended to `nodes`."""
    if isinstance(node, list):
        return f"[{', '.join([_dump(one, nodes) for one in node])}]"
    if not isinstance(node, ast.AST):
        return ascii(node)  # the characters that repr escapes also depend on the version
    nodes.append(node)
    fields = []
    for name in node._fields:
        value = _without_documentation(node, name) if isinstance(node, _DOCUMENTED) else getattr(node, name, None)
        if isinstance(node, ast.JoinedStr):
            # Versions of Python cut the text of an f-string into different pieces; single characters are the same in all.
            parts = [str(part.value) if isinstance(part, ast.Constant) else [part] for part in node.values]
            fields.append(f"values={_dump([*chain.from_iterable(parts)], nodes)}")
        elif value is not None and value != []:
            fields.append(f"{name}={_dump(value, nodes)}")
    return f"{type(node).__name__}({', '.join(fields)})"


def _imports(nodes: list[ast.AST], path: Path, root: Path) -> set[str]:
    """Full names of all imports of the module at `path`; "from a import b" gives a and a.b. nodes: all nodes of its tree."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(root.parent).parts[: -node.level] if node.level else ()
            module = ".".join([*package, *([node.module] if node.module else [])])
            names.update([module, *(f"{module}.{alias.name}" for alias in node.names)])
    return names


@cache
def _modules(name: str, root: Path) -> tuple[Path, ...]:
    """The project file of an import, if there is one, and the __init__ files of its packages."""
    above = name.rpartition(".")[0]
    path = root.parent.joinpath(*name.split("."))
    files = [one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()]
    return (*(_modules(above, root) if above else ()), *files)


def _facts(path: Path, root: Path) -> dict[str, Any]:
    """Digest of a file's code, and full names of its `imports`.

    Every call of Snakemake and every job asks for those of a hundred files. They are kept with Python's bytecode, where it may be
    written, and are valid for exactly these bytes of the file and of what reads it.
    """
    source, place = path.read_bytes(), str(path.relative_to(root.parent) if root in path.parents else path.name)
    valid_for = hashlib.sha256(b"\0".join([sys.version.encode(), _SELF, place.encode(), source])).hexdigest()
    kept = Path(cache_from_source(path)).with_suffix(".json")
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(kept.read_bytes())
        if known["valid_for"] == valid_for:
            return known
    nodes: list[ast.AST] = []
    digest = hashlib.sha256(_dump(parsed(path), nodes).encode()).hexdigest()
    forbidden.refuse(nodes, path, root)
    facts = {"valid_for": valid_for, "digest": digest, "imports": sorted(_imports(nodes, path, root))}
    if not sys.dont_write_bytecode:
        with suppress(OSError):
            write_json(kept, facts)
    return facts


@cache
def _read(path: Path, root: Path) -> tuple[str, frozenset[Path], frozenset[str]]:
    """Digest of a file's code, and the project files and libraries that it imports."""
    facts = _facts(path, root)
    own = [name for name in facts["imports"] if name.partition(".")[0] == root.name]
    libraries = {name.partition(".")[0] for name in facts["imports"]} - sys.stdlib_module_names - {root.name}
    return facts["digest"], frozenset(chain.from_iterable(_modules(name, root) for name in own)), frozenset(libraries)


@cache
def behind(*sources: Path, root: Path = PACKAGE) -> tuple[dict[Path, str], frozenset[str]]:
    """`sources` and everything that they import from the package folder `root`, directly or not, each with the digest of its
    code; and the libraries that all of these import."""
    seen: dict[Path, str] = {}
    libraries: set[str] = set()
    pending = list(sources)
    while pending:
        path = pending.pop()
        if path not in seen:
            seen[path], imported, others = _read(path, root)
            pending += imported
            libraries |= others
    return seen, frozenset(libraries)


@cache
def fingerprint(*sources: Path, root: Path = PACKAGE) -> str:
    """sha256 of the code of `sources` and of everything that they import from the package folder `root`, directly or not."""
    # Only names relative to `root` are hashed: the same code in another folder has the same fingerprint.
    lines = sorted(
        f"{path.name if root not in path.parents else path.relative_to(root)} {digest}"
        for path, digest in behind(*sources, root=root)[0].items()
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@cache
def _version(library: str) -> str | None:
    """The installed version without the name of its build ("+cpu").

    None if no installed distribution has the library, or if its files are edited in their own folder (`pip install -e`): its
    version would stay the same.
    """
    if library in _FOR_TYPES:
        return None
    name = DISTRIBUTIONS.get(library, library)
    if installed(name) is None:
        found = metadata.packages_distributions().get(library)  # slow, and rarely needed
        if not found:
            return None
        name = found[0]
    read = metadata.distribution(name).read_text  # metadata of packages are UTF-8
    origin = json.loads(read("direct_url.json") or "{}")
    return None if origin.get("dir_info", {}).get("editable") else installed(name)


def _refuse_unknown(paths: Iterable[Path], libraries: dict[str, str | None]) -> None:
    """Refuse imports that would fail in a job, and those of files whose changes would go unnoticed."""
    for name in sorted(name for name, version in libraries.items() if version is None and name not in _FOR_TYPES):
        path = next(path for path in paths if name in _read(path, PACKAGE)[2])
        if find_spec(name) is None:
            raise ValueError(f"{path} imports {name}, which is not installed: install it, or put its file below {PACKAGE}")
        raise ValueError(
            f"{path} imports {name}, which belongs to no installed package, or to one installed with -e, so results would not be "
            f"made again if it changed: put it below {PACKAGE}, or install it without -e"
        )


@cache
def code(*modules: str) -> dict[str, Any]:
    """The code of modules such as "models.cnn", for recipes and records: the modules, their `fingerprint`, and the versions of
    the `libraries` that they use directly or through imports. Libraries that only read and write are left out.

    Raises:
        ValueError: something is imported that is neither in the project nor in an installed package.
    """
    paths = [module_path(name) for name in modules]
    files, used = behind(*paths)
    libraries = {name: _version(name) for name in sorted(used - FILES_ONLY)}
    _refuse_unknown(files, libraries)
    return {"modules": list(modules), "fingerprint": fingerprint(*paths), "libraries": libraries}
