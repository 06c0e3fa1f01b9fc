"""What modules declare about themselves, read without importing them.

Tasks, models, regularizers, datasets and figures are modules named like the thing; their options stand in module-level
literals (PARAMETERS, KIND, ...). Reading these from the source keeps the start of a workflow fast: no torch is imported to
validate a configuration.
"""

from __future__ import annotations

import ast
import copy
import re
from functools import cache
from pathlib import Path
from typing import Any

from compositional.runs import NAME

PACKAGE = Path(__file__).parent
# What modules in these subpackages must declare; their __init__ says what it means.
REQUIRED = {
    "datasets": {"FILES"},
    "figures": {"SOURCE", "PARAMETERS"},
    "kinds": {"LOSSES"},
    "models": {"KIND", "REPRESENTATIONS", "PARAMETERS"},
    "regularizers": {"APPLIES_TO", "REPRESENTATIONS", "PARAMETERS"},
    "tasks": {"KIND", "DATASET", "PARAMETERS"},
}


def module_path(name: str) -> Path:
    """Source file of a module of this project, given as "tasks.scan_jump"; the file need not exist."""
    return PACKAGE.joinpath(*name.split(".")).with_suffix(".py")


@cache
def available(kind: str) -> tuple[str, ...]:
    """Names of the modules in a subpackage, for example available("models").

    Raises:
        ValueError: one has a name that no path of a result can have.
    """
    paths = [path for path in (PACKAGE / kind).glob("[!.]*.py") if path.stem != "__init__"]
    for path in paths:
        if not re.fullmatch(NAME, path.stem) or (kind, path.stem) == ("regularizers", "none"):
            reserved = "; 'none' is the plain run (lambda = 0)" if kind == "regularizers" else ""
            raise ValueError(f"{path}: rename this module: a letter, then letters, digits and _, all lower case{reserved}")
    return tuple(sorted(path.stem for path in paths))


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a source file.

    Raises:
        ValueError: it is no Python, or not in its encoding.
    """
    try:
        return ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from error


def _value(node: ast.expr, own: dict[str, Any], imported: dict[str, str]) -> Any:
    """The value of a declaration. own: what the module declares above it; imported: modules by their name in it.

    Raises:
        ValueError: it is computed, so no declaration.
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


@cache
def declarations(name: str) -> dict[str, Any]:
    """The upper-case literals of a module, such as {"KIND": "sequence", "PARAMETERS": {...}}.

    `PARAMETERS = other.PARAMETERS` takes over what another module of the project, imported there, declares, and
    `PARAMETERS = other.PARAMETERS | SHARED | {...}` joins it with what this module declares above and with more of its own.

    Raises:
        FileNotFoundError: there is no such module.
        ValueError: it is no Python, it lacks a declaration or has it wrong.
    """
    found: dict[str, Any] = {}
    imported: dict[str, str] = {}
    for node in parsed(module_path(name)).body:
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
            continue
    kind, own = name.partition(".")[::2]
    if own in available(kind) and (missing := sorted(REQUIRED.get(kind, set()) - found.keys())):
        raise ValueError(
            f"{module_path(name)} declares no {', '.join(missing)}: each must be a literal of this module, <module>.<NAME> of "
            f"a module that it imports from compositional, or dictionaries joined by |; see {module_path(f'{kind}.__init__')}"
        )
    for listed in ("REPRESENTATIONS", "APPLIES_TO"):
        if isinstance(text := found.get(listed), str):
            raise ValueError(f"{module_path(name)}: {listed} = {text!r} is text; write ({text!r},) with its comma")
    return found


def is_network(model: str) -> bool:
    """Whether a model, such as "models.gru_attention", is an ordinary `torch.nn.Module` (`training.networks`)."""
    return any(isinstance(node, ast.ClassDef) and node.name == "Network" for node in parsed(module_path(model)).body)


def defaults(module: str) -> dict[str, Any]:
    """The options of a module, such as "models.cnn", where nothing else is asked for: the caller's own, to change at will."""
    return {name: copy.deepcopy(option["default"]) for name, option in declarations(module)["PARAMETERS"].items()}


def kind_declares(kind: str) -> dict[str, Any]:
    """What a kind of task declares, with the defaults that `kinds` gives what it does not."""
    return declarations("kinds.__init__")["DEFAULTS"] | declarations(f"kinds.{kind}")


def kinds_that(declare: str) -> list[str]:
    """The kinds of task that declare True as this, such as "INFLUENCE"."""
    return [kind for kind in available("kinds") if kind_declares(kind)[declare]]
