"""Fingerprints of code: what a module does, together with every module of the project that it imports.

Snakemake looks at the script file alone. A fingerprint changes when, and only when, the code does: comments, docstrings and
layout do not count, and neither do modules that are not imported. It is the same in every version of Python: jobs in
environments of their own may have another than the build, and an upgrade trains nothing again.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path

from compositional.plugins import PACKAGE, module_path, parsed

SCRIPTS = PACKAGE.parents[1] / "workflow" / "scripts"


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
    return tree


def _dump(node: object) -> str:
    """Like ast.dump, which differs between versions of Python: newer ones have fields that stay empty."""
    if isinstance(node, list):
        return f"[{', '.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return ascii(node)  # which characters repr escapes differs, too
    fields = {name: value for name, value in ast.iter_fields(node) if value is not None and value != []}
    if isinstance(node, ast.JoinedStr):
        # The text of an f-string comes in different pieces; in single characters it is the same.
        parts = [str(part.value) if isinstance(part, ast.Constant) else [part] for part in node.values]
        fields["values"] = [*chain.from_iterable(parts)]
    return f"{type(node).__name__}({', '.join(f'{name}={_dump(value)}' for name, value in fields.items())})"


def _imports(tree: ast.Module, path: Path, root: Path) -> set[Path]:
    """Project files that the module at `path` imports, with the __init__ files of their packages."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(root.parent).parts[: -node.level] if node.level else ()
            module = ".".join([*package, *([node.module] if node.module else [])])
            names.update([module, *(f"{module}.{alias.name}" for alias in node.names)])
    found: set[Path] = set()
    for name in names:
        parts = name.split(".")
        if parts[0] != root.name:
            continue
        for depth in range(1, len(parts) + 1):
            path = root.parent.joinpath(*parts[:depth])
            found.update(candidate for candidate in (path.with_suffix(".py"), path / "__init__.py") if candidate.is_file())
    return found


@cache
def _read(path: Path, root: Path) -> tuple[str, frozenset[Path]]:
    """Digest of a file's code and the project files it imports."""
    tree = _without_docstrings(parsed(path))
    return hashlib.sha256(_dump(tree).encode()).hexdigest(), frozenset(_imports(tree, path, root))


@cache
def fingerprint(*sources: Path, root: Path = PACKAGE) -> str:
    """sha256 over the code of `sources` and of all they import from the package folder `root`, transitively."""
    seen: dict[Path, str] = {}
    pending = list(sources)
    while pending:
        path = pending.pop()
        if path not in seen:
            seen[path], imported = _read(path, root)
            pending += imported
    # Names, not places: the same code in another folder has the same fingerprint.
    lines = sorted(
        f"{path.name if root not in path.parents else path.relative_to(root)} {digest}" for path, digest in seen.items()
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def of_script(script: str, modules: Sequence[str] = ()) -> str:
    """Of a script of the workflow, of the modules ("models.cnn") that it loads by name, and of all that these import."""
    return fingerprint(SCRIPTS / f"{script}.py", *map(module_path, modules))
