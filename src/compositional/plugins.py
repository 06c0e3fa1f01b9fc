"""Plug-ins: modules that are found by their names, described by their folder's contract, and read without importing them.

Tasks, models, regularizers, datasets, kinds, tables and figures are modules. The dataclass in a folder's `__init__` lists what
its modules must and may define. Fields in upper case are literals of the module, the others are functions; fields with a default
are optional. `load` imports a module and fills in this dataclass. `declarations` reads the literals from the source and refuses a
module that breaks the contract. Validating a configuration imports no torch, so a workflow starts fast.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import difflib
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from compositional.runs import NAME

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PACKAGE = Path(__file__).parent
# A name that is this similar to a missing name of the contract is reported as a misspelling of it.
LIKENESS = 0.8
Description = TypeVar("Description", bound="DataclassInstance")


@dataclasses.dataclass(frozen=True)
class Contract:
    """What a folder's modules may define: the fields of its dataclass.

    required: names without a default, and the keys of UNLESS in the `__init__`. unless: for such a key, the name that may be
    defined instead. defaults: of the upper-case names whose default is a literal.
    """

    names: tuple[str, ...]
    required: frozenset[str]
    unless: dict[str, str]
    defaults: dict[str, Any]


def module_path(name: str) -> Path:
    """Source file of a module of this project, given as "tasks.scan_jump"; the file need not exist."""
    return PACKAGE.joinpath(*name.split(".")).with_suffix(".py")


@cache
def available(kind: str) -> tuple[str, ...]:
    """Names of the modules in a subpackage, for example available("models").

    Raises:
        ValueError: a module has a name that cannot be part of a result's path.
    """
    paths = [path for path in (PACKAGE / kind).glob("[!.]*.py") if path.stem != "__init__"]
    for path in paths:
        if not re.fullmatch(NAME, path.stem) or (kind, path.stem) == ("regularizers", "none"):
            reserved = "; 'none' is the plain run (lambda = 0)" if kind == "regularizers" else ""
            raise ValueError(f"{path}: rename this module: a letter, then letters, digits and _, all lower case{reserved}")
        if (other := path.with_suffix("") / "__init__.py").exists():
            raise ValueError(f"{path}: Python would import {other} instead of it: rename one of them")
    return tuple(sorted(path.stem for path in paths))


@lru_cache(maxsize=4)  # trees take much memory, and time at the end
def _tree(source: bytes, path: Path) -> ast.Module:
    try:
        return ast.parse(source, filename=str(path))
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from error


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a source file, which must not be changed: the next call may return the same one.

    Raises:
        ValueError: the file is not valid Python, or does not match its encoding.
    """
    return _tree(path.read_bytes(), path)


@cache
def contract(kind: str) -> Contract | None:
    """What modules in a subpackage must and may define, read from its `__init__` (`Model` in `models`); None if it has none."""
    path = module_path(f"{kind}.__init__")
    unless: dict[str, str] = {}
    for node in parsed(path).body if path.is_file() else ():
        if isinstance(node, ast.Assign) and "UNLESS" in _bound(node):
            unless = ast.literal_eval(node.value)
        if not (isinstance(node, ast.ClassDef) and node.name == kind.removesuffix("s").capitalize()):
            continue
        fields = {
            field.target.id: field.value
            for field in node.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        }
        defaults = {}
        for name, value in fields.items():
            if name.isupper() and value is not None:
                # field(default_factory=dict): each description gets its own dictionary.
                defaults[name] = {} if isinstance(value, ast.Call) else ast.literal_eval(value)
        required = {name for name, value in fields.items() if value is None or name in unless}
        return Contract(tuple(fields), frozenset(required), unless, defaults)
    return None


def load(contract: type[Description], name: str) -> Description:
    """Import a plug-in and return its description, for example load(Model, "models.cnn").

    Raises:
        ValueError: the module breaks its contract.
    """
    declarations(name)
    module = import_module(f"{PACKAGE.name}.{name}")
    names = [field.name for field in dataclasses.fields(contract)]
    return contract(**{own: vars(module)[own] for own in names if own in vars(module)})


def _value(node: ast.expr, own: dict[str, Any], imported: dict[str, str]) -> Any:
    """The value of a declaration. own: what the module declares above it; imported: imported modules by their local names.

    Raises:
        ValueError: the value is computed, so it is not a declaration.
    """
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return _value(left, own, imported) | _value(right, own, imported)
        case ast.Name(name) if name in own:
            return own[name]
        case ast.Attribute(ast.Name(module), name) if module in imported and module_path(imported[module]).is_file():
            if name in (others := declarations(imported[module])):
                return others[name]
    return ast.literal_eval(node)


def _computed(value: ast.AST, own: dict[str, Any], imported: dict[str, str]) -> ast.expr | None:
    """The first and smallest part of a value because of which it is no declaration; `own` and `imported` as for `_value`."""
    if not isinstance(value, ast.expr):
        return None
    try:
        _value(value, own, imported)
    except ValueError:
        joined = isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)
        within = ast.iter_child_nodes(value) if joined or isinstance(value, ast.Dict | ast.List | ast.Set | ast.Tuple) else ()
        return next(filter(None, (_computed(part, own, imported) for part in within)), value)
    return None


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module binds, imports excluded."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    yield from (target.id for target in targets if isinstance(target, ast.Name))


def _check(name: str, tree: ast.Module, declared: dict[str, Any], computed: dict[str, Callable], contract: Contract) -> None:
    """Refuse a module that breaks its folder's contract.

    computed: for each name whose value is computed, a function that finds the part of it that is.

    Raises:
        ValueError: the message names the file, what is missing or misspelled, and the nearest match.
    """
    path, see = module_path(name), f"see {module_path(name.partition('.')[0] + '.__init__')}"
    lines = {own: node.lineno for node in tree.body for own in _bound(node)}
    imported = {alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    defined = {*lines, *imported}
    absent = [one for one in contract.names if one not in defined and contract.unless.get(one) not in defined]
    for own, line in lines.items():
        alike = [one for one in absent if one.isupper() == own.isupper()]
        if not own.startswith("_") and (close := difflib.get_close_matches(own, alike, n=1, cutoff=LIKENESS)):
            raise ValueError(
                f"{path}, line {line}: {own!r} is nothing that a module here defines; did you mean {close[0]!r}? If it is not "
                f"meant, begin its name with _; {see}"
            )
    if missing := [one for one in contract.names if one in contract.required and one in absent and not one.isupper()]:
        helpers = [one for one in lines if not one.isupper() and one not in contract.names]
        close = difflib.get_close_matches(missing[0], helpers, n=1, cutoff=0.5)
        guess = f" (is it {close[0]!r}, line {lines[close[0]]}?)" if close else ""
        others = " and ".join(sorted({contract.unless[one] for one in missing if one in contract.unless}))
        instead = f", or a class {others} instead of them" if others else ""
        raise ValueError(f"{path} defines no {', '.join(missing)}{guess}: each must be a function of this module{instead}; {see}")
    if missing := sorted(one for one in contract.required if one.isupper() and one not in declared):
        part = computed[missing[0]]() if missing[0] in computed else None
        why = f" (line {part.lineno}: {ast.unparse(part)[:60]} is computed: write its value)" if part else ""
        raise ValueError(
            f"{path} declares no {', '.join(missing)}{why}: each must be a literal of this module, <module>.<NAME> of "
            f"a module that it imports from compositional, or dictionaries joined by |; {see}"
        )
    for one in contract.names:
        if one.isupper() and one in lines and one not in declared and one in contract.defaults:
            raise ValueError(f"{path}, line {lines[one]}: {one} is computed, and must be a literal; {see}")


@cache
def declarations(name: str) -> dict[str, Any]:
    """The upper-case literals of a module, such as {"KIND": "sequence", "PARAMETERS": {...}}, plus the contract's defaults.

    `PARAMETERS = other.PARAMETERS` takes over the declaration of another module of the project that the module imports.
    `PARAMETERS = other.PARAMETERS | SHARED | {...}` merges it with a literal declared above and with further options.

    Raises:
        FileNotFoundError: there is no such module.
        ValueError: the module is not valid Python or breaks its contract.
    """
    found: dict[str, Any] = {}
    computed: dict[str, Callable] = {}
    imported: dict[str, str] = {}
    tree = parsed(module_path(name))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE.name:
            package = node.module.split(".")[1:]
            imported |= {alias.asname or alias.name: ".".join([*package, alias.name]) for alias in node.names}
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if not (isinstance(target, ast.Name) and target.id.isupper() and value):
            continue
        try:
            found[target.id] = _value(value, found, imported)
        except ValueError:
            computed[target.id] = partial(_computed, value, found, imported)
    kind, own = name.partition(".")[::2]
    if own in available(kind) and (promised := contract(kind)):
        _check(name, tree, found, computed, promised)
        found = copy.deepcopy(promised.defaults) | found
    for listed in ("REPRESENTATIONS", "APPLIES_TO", "PACKAGES"):
        if isinstance(text := found.get(listed), str):
            raise ValueError(f"{module_path(name)}: {listed} = {text!r} is text; write ({text!r},) with its comma")
    return found


@cache
def defines(module: str, name: str) -> bool:
    """Whether a module, such as "models.kernel_machine", defines or imports a name, such as "fit"."""
    body = parsed(module_path(module)).body
    imported = [alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names]
    return name in [*imported, *(own for node in body for own in _bound(node))]


def is_network(model: str) -> bool:
    """Whether a model, such as "models.gru_attention", is an ordinary `torch.nn.Module` (`training.networks`)."""
    return defines(model, "Network")


def defaults(module: str) -> dict[str, Any]:
    """The default options of a module, such as "models.cnn", as a new dictionary that the caller may change."""
    return {name: copy.deepcopy(option["default"]) for name, option in declarations(module)["PARAMETERS"].items()}


def kinds_that(declare: str) -> list[str]:
    """The kinds of task that set this declaration, such as "INFLUENCE", to True."""
    return [kind for kind in available("kinds") if declarations(f"kinds.{kind}")[declare]]
