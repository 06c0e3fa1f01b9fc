"""Makes records ask again for the commit of the sources."""

from __future__ import annotations

from compositional.records import provenance


def forget() -> None:
    """Forget git's answer about the sources, which is otherwise asked for only once per process."""
    provenance.source.cache_clear()
    provenance._asked.cache_clear()
