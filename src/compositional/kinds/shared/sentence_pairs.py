"""Split tasks whose examples are pairs of sentences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from compositional.language.vocabulary import Vocabulary

SplitT = TypeVar("SplitT")


def load(folder: Path, device: str, split: Callable[..., SplitT]) -> dict[str, SplitT]:
    """Read a task (columns input, output and, in some members, category) from its folder; `split` makes each member."""
    from datasets import DatasetDict

    members = DatasetDict.load_from_disk(str(folder))
    about = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    source, target = Vocabulary(tuple(about["source_words"])), Vocabulary(tuple(about["target_words"]))
    return {
        name: split(
            member["input"][:],  # slicing the column reads it in one piece, not row by row
            member["output"][:],
            source,
            target,
            device,
            member["category"][:] if "category" in member.column_names else None,
        )
        for name, member in members.items()
    }
