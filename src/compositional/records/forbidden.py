"""What the code of plug-ins may not contain, because nothing would notice that it changes results."""

from __future__ import annotations

import ast
from pathlib import Path

# Folders whose modules must import by statements, in which all that determines their results can be seen.
_PLUG_INS = {"datasets", "figures", "kinds", "models", "regularizers", "tables", "tasks"}
# Folders whose modules compute results.
_COMPUTING = _PLUG_INS | {"evaluation", "language", "layers", "measures", "synthesis"}
_BY_NAME = {"import_module", "__import__", "spec_from_file_location", "SourceFileLoader", "run_path", "run_module", "exec"}
# What takes its first state from the system unless it is given a seed, and what always does.
_SEEDED = {"default_rng", "RandomState", "SeedSequence", "Random", "seed", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"}
_OF_THE_SYSTEM = {"SystemRandom", "getrandom", "secrets", "urandom", "uuid1", "uuid4"}
_CLOCKS = {"now", "time", "time_ns", "today", "utcnow"}
_INSTEAD = (
    "Draw from compositional.randomness.generator(key) or a generator with a seed of its own; a model has tap.noise (a Network "
    "torch's functions) and a regularizer step.normal"
)


def _name(node: ast.AST) -> str | None:
    """The name that a node refers to: os.urandom, urandom and `from os import urandom` all refer to urandom."""
    match node:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case ast.alias(name):
            return name.rpartition(".")[2]
    return None


def _origin(node: ast.AST) -> str | None:
    """The first name of a chain: np of np.random.default_rng, torch of torch.Generator().seed, self of self.time."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value=inner) | ast.Call(func=inner):
            return _origin(inner)
        case ast.alias(name, asname):
            return asname or name.partition(".")[0]
    return None


def _is_unseeded(call: ast.Call) -> bool:
    """Whether nothing or only None is given, as in default_rng() and default_rng(seed=None)."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return all(isinstance(value, ast.Constant) and value.value is None for value in given)


def _differs(node: ast.AST) -> str | None:
    """Why a node gives something else in every call; None if it does not."""
    if (name := _name(node)) in _OF_THE_SYSTEM:
        return f"{name} draws random numbers of the system, which have no seed. {_INSTEAD}"
    if not isinstance(node, ast.Call):
        return None
    if (name := _name(node.func)) in _SEEDED and _is_unseeded(node):
        return f"{name}() has no seed, so it draws other random numbers in every call. {_INSTEAD}"
    if name in _CLOCKS:
        return f"{name}() is the time, so results could not be made again. To measure seconds, use time.perf_counter()"
    return None


def refuse(nodes: list[ast.AST], path: Path, root: Path) -> None:
    """Refuse a module of a plug-in that imports others by their name or file as text, because a change of these would go
    unnoticed, or computes with random numbers without a seed or with the time, because each call would give other results.

    nodes: all nodes of its tree. root: the package's folder.

    Raises:
        ValueError: the message has the file and the line.
    """
    folder = path.relative_to(root).parts[0] if root in path.parents else ""
    # A module may have variables, functions and layers with such names.
    imported = {_origin(alias) for alias in nodes if isinstance(alias, ast.alias)}
    for node in nodes:
        if folder in _PLUG_INS and isinstance(node, ast.Name | ast.Attribute) and (name := _name(node)) in _BY_NAME:
            raise ValueError(
                f"{path}, line {node.lineno}: {name} imports a module by its name or file, so results would not be made again if "
                f"that changed: put it below {root}, and write an import statement for each module that it can be"
            )
        if folder in _COMPUTING and _origin(node) in imported and (why := _differs(node)):
            raise ValueError(f"{path}, line {getattr(node, 'lineno', 1)}: {why}")
