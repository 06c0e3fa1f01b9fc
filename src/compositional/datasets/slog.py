"""SLOG (Li et al., EMNLP 2023): COGS extended by relative clauses, questions and center embedding, with forms without variables.

Files are tab-separated: sentence, logical form, category. The generalization sets are in an encrypted archive, so that they do
not enter training corpora of language models; its README states that the password is the benchmark's name. They are read in
memory. Please keep them zipped.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

LICENSE = {
    "name": "MIT",
    "url": "https://github.com/bingzhilee/SLOG/blob/1c55df85006d58b842520c79dcb8e1b43df2836f/LICENSE",
    "redistribution": True,
}
FILES = {
    # The license requires that every copy contains its text.
    "LICENSE": {
        "sha256": "5dfa5d2bea441ee493a697e6bc4463d1c58a9b31945e5d9d6e7b44ce9a318aa5",
        "bytes": 1_067,
        "mirror": "slog/LICENSE",
        "url": "https://raw.githubusercontent.com/bingzhilee/SLOG/1c55df85006d58b842520c79dcb8e1b43df2836f/LICENSE",
    },
    "train.tsv": {
        "sha256": "0afc442d1cfca446a3c356c58e979df631d19f863b62edd2c4d6cc70a34e0778",
        "bytes": 3_796_762,
        "mirror": "slog/train.tsv",
        "url": "https://raw.githubusercontent.com/bingzhilee/SLOG/1c55df85006d58b842520c79dcb8e1b43df2836f/data/varfree_LF/train.tsv",
    },
    "dev.tsv": {
        "sha256": "8677b6b92f9649e74f9e99c2affc9a8a0c4810a612dd32fcd1b45448ca3647f9",
        "bytes": 472_711,
        "mirror": "slog/dev.tsv",
        "url": "https://raw.githubusercontent.com/bingzhilee/SLOG/1c55df85006d58b842520c79dcb8e1b43df2836f/data/varfree_LF/dev.tsv",
    },
    "test.tsv": {
        "sha256": "2f2942a345507ef6af5885ccde48f08bf32a1dd2ba0e19da371d4bbd40b90644",
        "bytes": 472_539,
        "mirror": "slog/test.tsv",
        "url": "https://raw.githubusercontent.com/bingzhilee/SLOG/1c55df85006d58b842520c79dcb8e1b43df2836f/data/varfree_LF/test.tsv",
    },
    "generalization_sets.zip": {
        "sha256": "99a13618b033b9f5721107f4c163d035d92a2fee340b217a5a1f6abc63842647",
        "bytes": 1_659_834,
        "mirror": "slog/generalization_sets.zip",
        "url": "https://raw.githubusercontent.com/bingzhilee/SLOG/1c55df85006d58b842520c79dcb8e1b43df2836f"
        "/data/generalization_sets.zip",
    },
}
GENERALIZATION = "generalization_sets/gen_varfreeLF.tsv"
PASSWORD = b"SLOG"


def load(path: Path) -> list[tuple[str, str, str]]:
    """Rows (sentence, logical form, category) of one file, or of the generalization sets in their archive."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            content = archive.read(GENERALIZATION, pwd=PASSWORD).decode("utf-8")
    else:
        content = path.read_text(encoding="utf-8")
    rows = [line.split("\t") for line in content.splitlines()]
    return [(sentence, form, category) for sentence, form, category in rows]
