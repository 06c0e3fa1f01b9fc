"""COGS (Kim and Linzen, EMNLP 2020): English sentences with logical forms, the generalization set as corrected in 2022.

Files are tab-separated: sentence, logical form, category.
"""

from __future__ import annotations

from pathlib import Path

LICENSE = {
    "name": "MIT",
    "url": "https://github.com/najoungkim/COGS/blob/165a7b669eade971fa47bf568a2e51925360fed8/LICENSE",
    "redistribution": True,
}
FILES = {
    # The license requires that every copy contains its text.
    "LICENSE": {
        "sha256": "fad4a0b4259dd9f0fd6ce2b472541493bac2fb6e6f5fafee9fab7ec8f31aee4d",
        "bytes": 1067,
        "mirror": "cogs/LICENSE",
        "url": "https://raw.githubusercontent.com/najoungkim/COGS/165a7b669eade971fa47bf568a2e51925360fed8/LICENSE",
    },
    "train.tsv": {
        "sha256": "220b3804b562c0156ee986eff1bdd15c27e52142549362a64f57baf86e304c78",
        "bytes": 4_146_574,
        "mirror": "cogs/train.tsv",
        "url": "https://raw.githubusercontent.com/najoungkim/COGS/165a7b669eade971fa47bf568a2e51925360fed8/data/train.tsv",
        "when": {"exposure_examples": 1},
    },
    # No sha256 is published, so the file is identified by its git hash at this commit.
    "train_100.tsv": {
        "git_blob": "aada7b25ed6157e8a1f517d95059ba2dec88d3f4",
        "mirror": "cogs/train_100.tsv",
        "url": "https://raw.githubusercontent.com/najoungkim/COGS/165a7b669eade971fa47bf568a2e51925360fed8/data/train_100.tsv",
        "when": {"exposure_examples": 100},
    },
    "dev.tsv": {
        "sha256": "ab66388a309c7ac1ad210c781a6a0ce12281a9ef24619a12422a752cef61bc21",
        "bytes": 522_121,
        "mirror": "cogs/dev.tsv",
        "url": "https://raw.githubusercontent.com/najoungkim/COGS/165a7b669eade971fa47bf568a2e51925360fed8/data/dev.tsv",
    },
    "test.tsv": {
        "sha256": "68f8e51e9f6d9cd22d64efe68dd21d7ea5ba327e9a2359481030161aea757035",
        "bytes": 521_111,
        "mirror": "cogs/test.tsv",
        "url": "https://raw.githubusercontent.com/najoungkim/COGS/165a7b669eade971fa47bf568a2e51925360fed8/data/test.tsv",
    },
    "gen.tsv": {
        "sha256": "d013d9eee0bafc153f8decc85f42814ac97260f84964d980e1e2b84577b82361",
        "bytes": 5_532_102,
        "mirror": "cogs/gen.tsv",
        "url": "https://raw.githubusercontent.com/najoungkim/COGS/165a7b669eade971fa47bf568a2e51925360fed8/data/gen.tsv",
    },
}


def load(path: Path) -> list[tuple[str, str, str]]:
    """Rows (sentence, logical form, category) of one file."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [(sentence, form, category) for sentence, form, category in rows]
