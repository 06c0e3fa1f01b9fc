"""Raw files: small ones in the published format for every dataset that is downloaded (`write`), and the published ones."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from compositional.plugins import declarations
from compositional.records.surroundings import MIRROR
from compositional.stages.download import fetch

_KINDS = {
    "texas": "state",
    "iowa": "state",
    "new york": "state",
    "utah": "state",
    "ohio": "state",
    "red": "river",
    "austin": "city",
}


def cifar10(folder: Path) -> None:
    """More images than `is_same_class` holds out."""
    source = np.random.default_rng(0)
    for name, count in {**{f"data_batch_{number}.bin": 2040 for number in range(1, 6)}, "test_batch_first1000.bin": 20}.items():
        records = source.integers(256, size=(count, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(count) % 10
        records.tofile(folder / name)


def cogs(folder: Path) -> None:
    """Sentences of a noun and a verb; the noun "shark" is known from a sentence of one word."""
    nouns, verbs, adverbs = ("girl", "boy", "cat", "dog", "fox", "cow"), ("ate", "ran", "slept", "sat"), ("here", "there", "now")
    rows = [(f"A {noun} {verb} .", f"{noun} ( x ) ; {verb} ( x )") for noun, verb in product(nouns, verbs)]
    more = [
        (f"A {noun} {verb} {adverb} .", f"{noun} ( x ) ; {adverb} ( {verb} ( x ) )")
        for noun, verb, adverb in product(nouns, verbs, adverbs)
    ]
    rows += more
    content = {
        "train.tsv": [(*row, "in_distribution") for row in rows] + [("shark", "shark", "primitive")],
        "dev.tsv": [(*row, "in_distribution") for row in rows[::6]],
        "test.tsv": [(*row, "in_distribution") for row in rows[::5]],
        "gen.tsv": [(f"A shark {verb} .", f"shark ( x ) ; {verb} ( x )", "prim_to_subj_common") for verb in verbs],
    }
    content["train_100.tsv"] = content["train.tsv"]
    for name, lines in content.items():
        (folder / name).write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")


def daxy(folder: Path) -> None:
    """Sentences of three subjects and five adjectives, and two with the new word."""
    subjects = {"i am": "je suis", "you are": "tu es", "he is": "il est"}
    adjectives = {"tired": "fatigue", "sick": "malade", "rich": "riche", "brave": "brave", "calm": "calme"}
    pairs = [(f"{a} {b} .", f"{c} {d} .") for (a, c), (b, d) in product(subjects.items(), adjectives.items())]
    new = [("you are daxy .", "tu es daxiste ."), ("he is daxy .", "il est daxiste .")]
    held_out = [("you are brave .", "tu es brave .")]
    for name, rows in {
        "train": [pair for pair in pairs if pair not in held_out],
        "test": new + held_out,
        "test.daxy": new,
    }.items():
        (folder / name).write_text("".join(f"IN: {a} OUT: {b}\n" for a, b in rows), encoding="utf-8")


def geoquery(folder: Path) -> None:
    """Questions of two forms about places with one-word or two-word names, and questions without a place."""
    forms = {"how big is {}": "( A , ( _size ( B , A ) , _const ( B , {} ) ) )"}
    forms |= {"what is the length of the great {}": "( A , ( _len ( B , A ) , _const ( B , {} ) ) )"}
    templates = []
    for (text, form), (name, kind) in product(forms.items(), _KINDS.items()):
        where = "test" if name == "utah" else "dev" if name == "ohio" else "train"
        sentence = {"question-split": where, "text": text.format(name), "variables": {}}
        logic = form.format(f"_{kind}id ( {name} )")
        templates.append({"logic": [logic], "query-split": where, "sentences": [sentence]})
    sentence = {"question-split": "train", "text": "what states are there", "variables": {}}
    templates.append({"logic": ["( A , _state ( A ) )"], "query-split": "train", "sentences": [sentence]})
    (folder / "geography-logic.txt").write_text(json.dumps(templates), encoding="utf-8")


def geoquery_funql(folder: Path) -> None:
    """Questions of three forms about places with one-word or two-word names; cities have a comma after their names."""
    forms = {
        "how big is {} ?": "answer ( size ( {} ) )",
        "what is the longest in {} ?": "answer ( longest ( river ( loc_2 ( {} ) ) ) )",
    }
    for split in ("query", "question"):
        written: dict[str, list] = {"train": [], "val": [], "test": []}
        for (text, form), (name, kind) in product(forms.items(), _KINDS.items()):
            term = f"{kind}id ( {name}, _ )" if kind == "city" else f"{kind}id ( {name} )"
            where = "val" if name == "ohio" else "test" if name == "utah" and split == "question" else "train"
            written[where].append((text.format(name), form.format(term)))
        written["train"].append(("which states are there ?", "answer ( state ( all ) )"))
        if split == "query":
            written["test"] = [(f"is {name} there ?", f"answer ( state ( stateid ( {name} ) ) )") for name in ("iowa", "utah")]
        for member, rows in written.items():
            for side, lines in zip(("src", "tgt"), zip(*rows, strict=True), strict=True):
                (folder / f"{split}.{side}.{member}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def iwslt(folder: Path) -> None:
    """Sentences drawn from five words of each language."""
    words = {"en": ["walking", "talking", "house", "houses", "walk"], "vi": ["đi_bộ", "nói", "nhà", "những_nhà", "bộ"]}
    source = np.random.default_rng(0)
    for name, count in (("train", 400), ("tst2012", 20), ("tst2013", 20)):
        drawn = [source.integers(5, size=source.integers(1, 6)) for _ in range(count)]
        for language, vocabulary in words.items():
            text = "\n".join(" ".join(vocabulary[word] for word in row) for row in drawn) + "\n"
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def multi30k(folder: Path) -> None:
    """Captions of an adjective, a noun and a verb. Training never has a red cat, and the test set has two."""
    adjectives = {"red": ("roter", "rouge"), "small": ("kleiner", "petit"), "old": ("alter", "vieux")}
    nouns = {"dog": ("Hund", "chien"), "cat": ("Kater", "chat"), "boy": ("Junge", "garçon")}
    verbs = {"runs": ("läuft", "court"), "sits": ("sitzt", "est assis"), "sleeps": ("schläft", "dort")}
    parts = [{word: (word, *others) for word, others in kind.items()} for kind in (adjectives, nouns, verbs)]
    rows = [
        {
            "en": f"A {a[0]} {n[0]} in the snow {v[0]}.",
            "de": f"Ein {a[1]} {n[1]} im Schnee {v[1]}.",
            "fr": f"Un {n[2]} {a[2]} dans la neige {v[2]}.",
        }
        for a, n, v in product(*(kind.values() for kind in parts))
    ]
    new = [row for row in rows if "red cat" in row["en"]]
    known = [row for row in rows if row not in new]
    for name, written in {"train": known[2:] * 4, "val": known[2:4], "test_2016_flickr": known[:2] + new[:2]}.items():
        for language in ("en", "de", "fr"):
            (folder / f"{name}.{language}").write_text("".join(f"{row[language]}\n" for row in written), encoding="utf-8")


def mini_imagenet(folder: Path) -> None:
    """Noise with three classes."""
    source = np.random.default_rng(0)
    for name in ("train", "validation", "test"):
        stream = io.BytesIO()
        np.savez(stream, images=source.integers(256, size=(24, 3, 84, 84), dtype=np.uint8), labels=np.arange(24) % 3)
        (folder / f"{name}.npz").write_bytes(stream.getvalue())


def mnist(folder: Path) -> None:
    """Noise with 30 images per class."""
    source = np.random.default_rng(0)
    for name in ("train", "t10k"):
        images = source.integers(256, size=(300, 28, 28), dtype=np.uint8)
        labels = (np.arange(300) % 10).astype(np.uint8)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, *images.shape) + images.tobytes())
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, len(labels)) + labels.tobytes())


def slog(folder: Path) -> None:
    """Sentences of two nouns and a verb, and three categories of the test set, in an archive that needs no password."""
    nouns, verbs = ("girl", "boy", "cat", "dog", "fox"), {"saw": "see", "liked": "like", "fed": "feed"}
    rows = [
        (f"A {a} {verb} the {b} .", f"{form} ( agent = {a} , theme = * {b} )", "in_distribution")
        for a, b, (verb, form) in product(nouns, nouns, verbs.items())
    ]
    more = [
        ("A girl saw a cat in a bed .", "see ( agent = girl , theme = cat ( nmod . in = bed ) )", "in_distribution"),
        ("Who saw the boy ?", "see ( agent = ? , theme = * boy )", "wh_Q_simple_trans"),
        *[("like", "like", "primitive")] * 2,
    ]
    deep = "cat ( nmod . in = bed ( nmod . in = bed ( nmod . in = bed ) ) )"
    content = {
        "train.tsv": [row for number, row in enumerate(rows) if number % 6 > 1] + more,
        "dev.tsv": rows[::6],
        "test.tsv": rows[1::6],
        "gen": [
            ("A cat in a bed saw the boy .", "see ( agent = cat ( nmod . in = bed ) , theme = * boy )", "PP_modif_subj"),
            ("Who liked a cat in a bed ?", "like ( agent = ? , theme = cat ( nmod . in = bed ) )", "Q_modified_NPs"),
            *(
                (f"A {a} liked a cat in a bed in a bed in a bed .", f"like ( agent = {a} , theme = {deep} )", "PP_3")
                for a in nouns
            ),
        ],
    }
    texts = {name: "".join("\t".join(line) + "\n" for line in lines) for name, lines in content.items()}
    with zipfile.ZipFile(folder / "generalization_sets.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("generalization_sets/gen_varfreeLF.tsv"), texts.pop("gen"))
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def write(dataset: str, folder: Path) -> None:
    """Write a dataset's raw files: small ones if a function above has its name, otherwise those of the mirror folder.

    Raises:
        DownloadError: the mirror folder (COMPOSITIONAL_MIRROR in the environment) does not have them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if dataset in globals():
        globals()[dataset](folder)
        return
    for name in declarations(f"datasets.{dataset}")["FILES"]:
        fetch(dataset, name, folder / name, ["mirror"])


def published(dataset: str, folder: Path) -> Path:
    """The folder with the published files of a dataset. The test is skipped if there is no mirror that has them."""
    for name, about in declarations(f"datasets.{dataset}")["FILES"].items():
        if not (Path(os.environ.get(MIRROR) or os.devnull) / about["mirror"]).is_file():
            pytest.skip(f"needs the published {about['mirror']}: {MIRROR}")
        fetch(dataset, name, folder / name, ["mirror"])
    return folder
