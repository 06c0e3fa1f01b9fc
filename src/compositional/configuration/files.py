"""The files of the configuration, checked before Snakemake merges them: it neither names a file that it cannot read nor says what
it replaces.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from compositional.configuration.messages import SECTIONS, ConfigurationError

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C ten times as fast, where PyYAML has it
_MERGE = "tag:yaml.org,2002:merge"


def _check_keys(document: yaml.Node | None) -> None:
    """Refuse a key that a mapping has twice: YAML takes the last one."""
    nodes, seen = [document], set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))  # an alias is the node of its anchor
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
            continue
        keys: dict[str, yaml.Node] = {}
        for key, value in node.value:
            nodes.append(value)
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE and keys.setdefault(key.value, key) is not key:
                first = keys[key.value].start_mark.line + 1
                problem = f"the key {key.value!r} stands in line {first} already; delete one of the two or rename it"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)


def read(path: Path) -> dict[str, Any]:
    """A file of the configuration.

    Raises:
        ConfigurationError: it is no mapping in YAML, or has a key twice.
    """
    content = path.read_bytes()
    try:
        loader = _Loader(content.decode())
        document = loader.get_single_node()
        _check_keys(document)
        found = loader.construct_document(document) if document else None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{path}, line {line}: this is not UTF-8; save the file as UTF-8") from error
    except yaml.YAMLError as error:
        mark, why = getattr(error, "problem_mark", None), getattr(error, "problem", None) or " ".join(str(error).split())
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        hint = "" if why.startswith("the key") else " (YAML: look at the indentation, by spaces alone, at colons and quotes)"
        raise ConfigurationError(f"{path}{where}: {why}{hint}") from error
    if not isinstance(found, dict):
        raise ConfigurationError(f"{path} has no keys at its top level: write some (config/README.md), or delete the file")
    return found


def check(files: Iterable[Path], overlays: Iterable[Path]) -> None:
    """Refuse what Snakemake would take in silence.

    Args:
        files: the default and the studies, none of which may change what is in another, as a copy of a study that was edited
            would. Figures must have names of their own, all else may be the same in two.
        overlays: from the command line; they may change anything.

    Raises:
        ConfigurationError: naming file, line and what to do.
    """
    known: dict[str, tuple[Path, Any]] = {}
    for path in files:
        content = read(path)
        studies = content.pop("studies", None)
        entries: dict[str, Any] = {}
        if isinstance(sizes := content.pop("pack_size", None), dict):
            content |= {f"pack_size.{device}": own for device, own in sizes.items()}
        for key, own in content.items():
            entries |= {f"{key}.{name}": value for name, value in own.items()} if isinstance(own, dict) else {key: own}
        for study, entry in studies.items() if isinstance(studies, dict) else ():  # what is none, the schema refuses
            figures = entry.get("figures") if isinstance(entry, dict) else None
            entries |= {f"studies.{study}.figures.{name}": value for name, value in (figures or {}).items()}
        for name, entry in entries.items():
            other, same = known.setdefault(name, (path, entry))
            if other != path and (name.startswith("studies.") or same != entry):
                chosen = name.partition(".")[0] in (*SECTIONS, "studies")
                cure = "rename it in one of them" if chosen else "leave it in one of them, or in an overlay for some builds alone"
                raise ConfigurationError(f"{name} is in {other} and again in {path}: {cure}")
    for path in overlays:
        read(path)
