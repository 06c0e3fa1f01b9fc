"""What modules declare about themselves, read without importing them.

Tasks, models, regularizers, datasets and figures are modules named like the thing; their options stand in module-level
literals (PARAMETERS, KIND, ...). Reading these from the source keeps the start of a workflow fast: no torch is imported to
validate a configuration.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent


def module_path(name: str) -> Path:
    """Source file of a module of this project, given as "tasks.scan_jump"; the file need not exist."""
    return PACKAGE.joinpath(*name.split(".")).with_suffix(".py")


def available(kind: str) -> list[str]:
    """Names of the modules in a subpackage, for example available("models")."""
    return sorted(path.stem for path in (PACKAGE / kind).glob("*.py") if path.stem != "__init__")


@cache
def declarations(name: str) -> dict[str, Any]:
    """The upper-case literals of a module, such as {"KIND": "sequence", "PARAMETERS": {...}}.

    `PARAMETERS = other.PARAMETERS` takes over what another module of the project declares.

    Raises:
        FileNotFoundError: there is no such module.
    """
    found: dict[str, Any] = {}
    for node in ast.parse(module_path(name).read_text()).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if not (isinstance(target, ast.Name) and target.id.isupper() and getattr(node, "value", None)):
            continue
        if isinstance(node.value, ast.Attribute) and isinstance(node.value.value, ast.Name):
            found[target.id] = declarations(node.value.value.id)[node.value.attr]
            continue
        try:
            found[target.id] = ast.literal_eval(node.value)
        except ValueError:
            continue  # computed, so not a declaration
    return found
