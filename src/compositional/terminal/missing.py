"""The message about a target that no rule makes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path

from compositional.planning.targets import OF_ALL
from compositional.records.places import ENDINGS, STAGES
from compositional.records.provenance import RUN_RECORDS

RULES = ("all", "manifest", "archive", "report")
OF_A_RUN = [name for record, made in RUN_RECORDS.items() for name in (*made, record)]
A_RUN = "results/runs/<task>/<model>/<regularizer>/lambda=<lambda>/seed=<seed>"


def nearest(target: str, figures: Iterable[str], tasks: Iterable[str]) -> str:
    """A sentence that suggests the nearest existing target.

    Args:
        target: the target that was requested.
        figures, tasks: names of all configured ones.
    """
    if target in STAGES:
        return f"There is no rule {target}: each job of runs has its own, {target}_<task>__<model>__..., and `-n -F` lists them."
    path, names = Path(target), {"figures": list(figures), "tables": list(figures), "splits": list(tasks)}
    if path.parts[:2] == ("results", "runs"):
        known = [str(path.with_name(name)) for name in OF_A_RUN]
    else:
        known = [*RULES, *(f"results/{name}" for name in OF_ALL), *(f"{A_RUN}/{name}" for name in OF_A_RUN)]
        known += [f"results/{kind}/{name}{ending}" for kind in names for name in names[kind] for ending in ENDINGS[kind]]
        if path.stem in names["figures"] and path.suffix not in ("", *ENDINGS["figures"], *ENDINGS["tables"]):
            return _sentence(target, f"results/figures/{path.stem}{ENDINGS['figures'][0]}")
    parts: list[Callable[[Path], str]] = [str, attrgetter("name" if path.suffix else "stem")]
    for part in parts:  # compare complete paths first, then names of files
        found = {part(Path(one)): one for one in reversed(known)}
        if close := difflib.get_close_matches(part(path), found, n=1, cutoff=0.8):
            return _sentence(target, found[close[0]])
    return _sentence(target)


def _sentence(target: str, name: str = "") -> str:
    guess = f"; did you mean {name}?" if name else "."
    return f"Nothing makes {target}{guess} README.md lists the targets."
