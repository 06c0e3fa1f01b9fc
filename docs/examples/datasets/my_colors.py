"""Descriptions of colored shapes and their codes, one pair per line."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "pairs.tsv": {
        "sha256": "79aecae73bde5d3d36d2cd83290f4a38e2f4f0df27eef1ecf53155d1e98425e9",  # the output of sha256sum
        "bytes": 5961,  # a larger download is stopped
        "mirror": "my_colors/pairs.tsv",  # below the mirror folder
        "url": "https://example.org/my_colors/pairs.tsv",  # where it is published
    }
}


def load(raw: Path) -> list[tuple[str, str]]:
    """Pairs (description, code); raw: the folder of this dataset's files."""
    return [tuple(line.split("\t")) for line in (raw / "pairs.tsv").read_text(encoding="utf-8").splitlines()]
