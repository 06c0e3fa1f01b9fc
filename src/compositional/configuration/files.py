"""Check the configuration files before Snakemake merges them. Snakemake does not name a file that it cannot read, and does not
report what it overrides.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import Any

import yaml

from compositional.configuration.messages import SECTIONS, ConfigurationError

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # written in C and ten times as fast, if PyYAML has it
_MERGE = "tag:yaml.org,2002:merge"
_NO_KEYS = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:null")
LARGEST = 1_000_000  # entries of a file; the largest file of this repository has some ten thousand


class _RefusedError(yaml.MarkedYAMLError):
    """The text is valid YAML, but is refused."""


def _refuse(problem: str, node: yaml.Node) -> None:
    raise _RefusedError(problem=problem, problem_mark=node.start_mark)


def _vanishes(text: str) -> bool:
    """Whether a number is so small that reading it gives 0."""
    return re.match(r"[-+]?[0.]*[1-9]", text) is not None and float(text) == 0


def _check_scalar(node: yaml.ScalarNode) -> None:
    """Refuse scalars that YAML 1.1, which is used here, reads as something else than they look like: 007, 1:30, 1_000, on."""
    kind = node.tag.rpartition(":")[2]
    usual = {"bool": r"(?i)true|false", "int": r"[-+]?(0|[1-9]\d*|0x[\da-fA-F]+)", "float": r"[^:_]*", "timestamp": r"(?!)"}
    if kind in usual and not re.fullmatch(usual[kind], node.value):
        meant = "a date" if kind == "timestamp" else yaml.safe_load(node.value)
        instead = "" if kind == "timestamp" else f", or {meant}"
        _refuse(f'YAML reads the bare {node.value} as {meant}; write "{node.value}" in quotes{instead}', node)
    if kind == "float" and _vanishes(node.value):
        _refuse(f"{node.value} is too small: it would be read as 0", node)


def _check_mapping(node: yaml.MappingNode) -> None:
    """Refuse duplicate keys, of which YAML takes the last one, and keys that are neither text nor numbers."""
    keys: dict[str, yaml.Node] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
            continue
        if key.tag in _NO_KEYS and not key.style:
            _refuse(f'YAML does not read the bare key {key.value} as text; write "{key.value}" in quotes', key)
        if keys.setdefault(key.value, key) is not key:
            first = keys[key.value].start_mark.line + 1
            _refuse(f"the key {key.value!r} is already in line {first}; delete one of the two or rename it", key)


def _check_nodes(node: yaml.Node, sizes: dict[int, int]) -> int:
    """The number of nodes after every alias is expanded.

    Args:
        sizes: the counts of other nodes, by identity; 0 for the nodes that contain this one.
    """
    if (known := sizes.get(id(node))) is not None:
        if not known:
            _refuse("this contains itself", node)
        return known
    sizes[id(node)] = 0
    size = 1
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(node)
    else:
        if isinstance(node, yaml.MappingNode):
            _check_mapping(node)
        pairs = node.value if isinstance(node, yaml.MappingNode) else [(own,) for own in node.value]
        size += sum(_check_nodes(own, sizes) for pair in pairs for own in pair)
    if size > LARGEST:
        _refuse(f"with its aliases expanded this has more than {LARGEST} entries", node)
    sizes[id(node)] = size
    return size


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Duplicate keys are refused, because JSON takes the last one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for place, (key, _) in enumerate(pairs) if key in [other for other, _ in pairs[:place]])
        raise ConfigurationError(f"the key {twice!r} is twice in one object; delete one of the two or rename it")
    return found


def _float(text: str) -> float:
    if _vanishes(text):
        raise ConfigurationError(f"{text} is too small: it would be read as 0")
    return float(text)


def _parsed(text: str) -> Any:
    """The value of a text: read as JSON if it is valid JSON, as Snakemake does, else as YAML."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_float=_float)
    except ConfigurationError:
        raise
    except ValueError:
        pass
    # The loader in C accepts tabs that Snakemake's loader refuses.
    loader = yaml.SafeLoader(text) if "\t" in text else _Loader(text)
    document = loader.get_single_node()
    if document is None:
        return None
    _check_nodes(document, {})
    return loader.construct_document(document)


def read(path: Path) -> dict[str, Any]:
    """A configuration file, in YAML or JSON whatever its suffix.

    Raises:
        ConfigurationError: it is neither YAML nor JSON, or not a mapping; it has a key twice, contains itself, or is too large;
            or it has a value that YAML reads as something else than it looks like.
    """
    content = path.read_bytes()
    try:
        found = _parsed(content.decode())
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{path}, line {line}: this is not UTF-8; save the file as UTF-8") from error
    except ValueError as error:  # such as a number with more digits than Python reads
        raise ConfigurationError(f"{path}: {error}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{path}: this is nested too deeply") from error
    except yaml.YAMLError as error:
        mark, why = getattr(error, "problem_mark", None), getattr(error, "problem", None) or " ".join(str(error).split())
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        hint = (
            "" if isinstance(error, _RefusedError) else " (YAML: check the indentation, which must use spaces, colons and quotes)"
        )
        raise ConfigurationError(f"{path}{where}: {why}{hint}") from error
    if not isinstance(found, dict):
        raise ConfigurationError(f"{path} has no keys at its top level: write some (config/README.md), or delete the file")
    return found


def shipped(folder: Path) -> list[Path]:
    """The default configuration and the studies in a folder, without the hidden files of editors."""
    return [folder / "config.yaml", *sorted((folder / "studies").glob("[!.]*.y*ml"))]


def check(files: Iterable[Path], overlays: Iterable[Path]) -> list[dict[str, Any]]:
    """Refuse what Snakemake would accept silently; the contents of `files`.

    Args:
        files: the default configuration and the studies. None of them may change an entry of another one, as an edited copy of
            a study would. Figures must have different names; any other entry may be in two files if it is the same.
        overlays: files from the command line; they may change anything.

    Raises:
        ConfigurationError: the message names the file, the line and what to do.
    """
    known: dict[str, tuple[Path, Any]] = {}
    contents = {path: read(path) for path in files}
    for path, whole in contents.items():
        content = dict(whole)
        studies = content.pop("studies", None)
        entries: dict[str, Any] = {}
        if isinstance(sizes := content.pop("pack_size", None), dict):
            content |= {f"pack_size.{device}": own for device, own in sizes.items()}
        for key, own in content.items():
            entries |= {f"{key}.{name}": value for name, value in own.items()} if isinstance(own, dict) else {key: own}
        for study, entry in studies.items() if isinstance(studies, dict) else ():  # the schema refuses other types later
            figures = entry.get("figures") if isinstance(entry, dict) else None
            entries |= {f"studies.{study}.figures.{name}": value for name, value in (figures or {}).items()}
        for name, entry in entries.items():
            other, same = known.setdefault(name, (path, entry))
            if other != path and (name.startswith("studies.") or same != entry):
                chosen = name.partition(".")[0] in (*SECTIONS, "studies")
                cure = "rename it in one of them" if chosen else "keep it in one of them, or in an overlay for some builds only"
                raise ConfigurationError(f"{name} is in {other} and again in {path}: {cure}")
    for path in overlays:
        read(path)
    return [*contents.values()]


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge configurations as Snakemake does: dictionaries key by key, everything else is replaced."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else copy.deepcopy(value)
    return result


def whole(folder: Path, given: dict[str, Any], overlays: Iterable[Path], replaces: bool, store: str | None) -> dict[str, Any]:
    """The configuration of a call of Snakemake.

    Args:
        folder: the shipped configuration. given: what Snakemake read from the command line, from these overlays among others.
        replaces: whether this replaces the shipped configuration instead of changing it.
        store: a store that has priority over the configured one.

    Raises:
        ConfigurationError: a file is wrong, or the workflow that imports this one as a module gives it no mapping.
    """
    # Only regular files are checked: a pipe cannot be read twice.
    if not isinstance(given, dict):
        raise ConfigurationError(f"the module gets the configuration {given!r}, must be a mapping such as {{device: cpu}}")
    contents = check([] if replaces else shipped(folder), [path for path in overlays if path.is_file()])
    found: dict[str, Any] = reduce(merged, (*contents, given), {})
    return found | {"store": store or found.get("store")}


def _reached(content: Any, place: str) -> tuple[int, Any]:
    """How many keys of a place such as tasks.scan_jump.training a content has, and the value there. Keys may contain dots."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    keys = {str(key): own for key, own in pairs}
    if found := max((key for key in keys if f"{place}.".startswith(f"{key}.")), key=len, default=""):
        depth, value = _reached(keys[found], place[len(found) + 1 :])
        return depth + 1, value
    return 0, content


def named(problem: str, config: dict[str, Any], files: Iterable[Path], otherwise: str) -> str:
    """A problem of a configuration, which begins with its place, with the file in which that is written.

    Args:
        config: what is merged from the files and from what has priority over them, which is called `otherwise`.
    """
    places, _, said = problem.partition(": ")
    unknown = re.match(r"unknown key '([^']*)'", said)
    place = ".".join([places.partition(", ")[0].partition(" and ")[0], *(unknown.groups() if unknown else ())])
    contents = [(str(path), _reached(read(path), place)) for path in files if path.is_file()]
    name, (depth, value) = max(reversed(contents), key=lambda one: one[1][0], default=("", (0, None)))  # the last of the deepest
    reached, merged_value = _reached(config, place)
    if depth < reached or (value != merged_value and not isinstance(value, dict)):
        name = otherwise
    return f"{name}: {problem}" if reached and name else problem
