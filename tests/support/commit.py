"""Which commit records name, asked again."""

from __future__ import annotations

from compositional.records import provenance


def forget() -> None:
    """What git said of the sources: it is asked once per process."""
    provenance.source.cache_clear()
    provenance._asked.cache_clear()
