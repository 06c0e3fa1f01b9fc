"""Multi30k, task 1 (Elliott, Frank, Sima'an and Specia 2016): captions of images in English, German and French, one per line.

The text is raw, neither tokenized nor lower-cased: 29,000 sentences for training, 1,014 for validation, and the 1,000 of
test_2016_flickr. The captions are those of Flickr30k, for research; the repository names no license that allows redistribution.
"""

from __future__ import annotations

from pathlib import Path

from compositional.datasets.shared import parallel_text

FILES = {
    "train.en": {
        "sha256": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
        "bytes": 1_801_238,
        "mirror": "multi30k/train.en.gz",
        "url": "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
        "/data/task1/raw/train.en.gz",
    },
    "train.de": {
        "sha256": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
        "bytes": 2_110_398,
        "mirror": "multi30k/train.de.gz",
        "url": "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
        "/data/task1/raw/train.de.gz",
        "when": {"target": "de"},
    },
    "train.fr": {
        "sha256": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
        "bytes": 2_111_303,
        "mirror": "multi30k/train.fr.gz",
        "url": "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
        "/data/task1/raw/train.fr.gz",
        "when": {"target": "fr"},
    },
    "val.en": {
        "sha256": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
        "bytes": 63_297,
        "mirror": "multi30k/val.en.gz",
        "url": "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
        "/data/task1/raw/val.en.gz",
    },
    "val.de": {
        "sha256": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
        "bytes": 75_981,
        "mirror": "multi30k/val.de.gz",
        "url": "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
        "/data/task1/raw/val.de.gz",
        "when": {"target": "de"},
    },
    "val.fr": {
        "sha256": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
        "bytes": 73_924,
        "mirror": "multi30k/val.fr.gz",
        "url": "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
        "/data/task1/raw/val.fr.gz",
        "when": {"target": "fr"},
    },
    "test_2016_flickr.en": {
        "sha256": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
        "bytes": 62_076,
        "mirror": "multi30k/test_2016_flickr.en.gz",
        "url": "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
        "/data/task1/raw/test_2016_flickr.en.gz",
    },
    "test_2016_flickr.de": {
        "sha256": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
        "bytes": 70_649,
        "mirror": "multi30k/test_2016_flickr.de.gz",
        "url": "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
        "/data/task1/raw/test_2016_flickr.de.gz",
        "when": {"target": "de"},
    },
    "test_2016_flickr.fr": {
        "sha256": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
        "bytes": 72_261,
        "mirror": "multi30k/test_2016_flickr.fr.gz",
        "url": "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
        "/data/task1/raw/test_2016_flickr.fr.gz",
        "when": {"target": "fr"},
    },
}
_MEMBERS = {"train": "train", "validation": "val", "in_distribution": "test_2016_flickr"}


def load(raw: Path, target: str) -> dict[str, list[tuple[str, str]]]:
    """Pairs of sentences (English, `target`: "de" or "fr") by member."""
    return {name: parallel_text.read(raw, file, ("en", target)) for name, file in _MEMBERS.items()}
