"""Functions and literals of a plug-in, compared with the types that its folder's contract states, without importing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import Any

from compositional.plugins import available, contract, module_path, parsed

_WORDS = {"bool": "True or False", "float | None": "a number or None"}  # types that have other names in messages
_NETWORK = {"__init__": 3, "forward": 2}  # of an ordinary torch.nn.Module, with self (`training.networks`)


@cache
def _types(section: str) -> dict[str, ast.expr]:
    """The annotations of a contract by name."""
    classes = [node for node in parsed(module_path(f"{section}.__init__")).body if isinstance(node, ast.ClassDef)]
    (own,) = [node for node in classes if node.name == section.removesuffix("s").capitalize()]
    return {
        node.target.id: node.annotation
        for node in own.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def _fits(value: Any, kind: str) -> bool:
    """Whether a literal has a type that is written like "str | tuple[str, ...]"; types other than those below are not checked."""
    known = {
        "None": value is None,
        "bool": isinstance(value, bool),
        "float": isinstance(value, int | float) and not isinstance(value, bool),
        "str": isinstance(value, str),
        "tuple[str, ...]": isinstance(value, list | tuple) and all(isinstance(one, str) for one in value),
    }
    return any(known.get(one, True) for one in kind.split(" | "))


def _takes(written: ast.FunctionDef, given: int, more: bool) -> bool:
    """Whether a function can be called with `given` values (more: and with others by their names)."""
    own = written.args
    places, needed = len(own.posonlyargs + own.args), len(own.posonlyargs + own.args) - len(own.defaults)
    enough = places >= given or own.vararg is not None
    return enough and (more or (needed <= given and None not in own.kw_defaults))


def _wrong(written: ast.FunctionDef, given: int, more: bool = False) -> Iterator[str]:
    if not written.decorator_list and not _takes(written, given, more):
        yield f", line {written.lineno}: {written.name}({ast.unparse(written.args)}) is called with {given} values"


def _wrong_network(node: ast.ClassDef) -> Iterator[str]:
    if not node.bases:
        yield f", line {node.lineno}: class {node.name} must be a torch.nn.Module: write class {node.name}(nn.Module)"
    own = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
    if "forward" not in own and all(ast.unparse(base).endswith("nn.Module") for base in node.bases):
        yield f", line {node.lineno}: class {node.name} defines no forward"
    for name in own.keys() & _NETWORK.keys():
        yield from _wrong(own[name], _NETWORK[name])


def disagreements(module: str, found: dict[str, Any]) -> list[str]:
    """Messages about functions of a module that take other arguments than they are called with, and literals of other types.

    found: what the module declares.
    """
    section, _, own = module.partition(".")
    if own not in available(section) or contract(section) is None:
        return []
    types = _types(section)
    problems: list[str] = []
    for node in parsed(module_path(module)).body:
        kind = types.get(node.name) if isinstance(node, ast.FunctionDef) else None
        if isinstance(kind, ast.BinOp):  # Callable[...] | None
            kind = kind.left
        if isinstance(node, ast.FunctionDef) and isinstance(kind, ast.Subscript) and isinstance(kind.slice, ast.Tuple):
            given = kind.slice.elts[0]
            # `build` of a task takes two values, and some by their names if it declares so.
            problems += _wrong(node, len(given.elts)) if isinstance(given, ast.List) else _wrong(node, 2, more=True)
        if isinstance(node, ast.ClassDef) and node.name == "Network" and section == "models":
            problems += _wrong_network(node)
            if not isinstance(found["REPRESENTATIONS"], dict):
                said = found["REPRESENTATIONS"]
                problems.append(f", line {node.lineno}: REPRESENTATIONS of a Network must be {{name: submodule}}, not {said!r}")
    problems += [
        f": {name} = {found[name]!r}, must be {_WORDS.get(kind, f'of the type {kind}')}"
        for name, kind in ((name, ast.unparse(own)) for name, own in types.items() if name in found)
        if not _fits(found[name], kind)
    ]
    return [f"{module_path(module)}{one}; see {module_path(f'{section}.__init__')}" for one in problems]
