"""Finished runs in a file: exactly the kept runs are unpacked; any other file is refused and adds nothing."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest
import torch
from support.disk import full_disk

from compositional import files
from compositional.archive import finished_runs
from compositional.archive.layout import ArchiveError
from compositional.records.entries import entries, name_of
from compositional.records.store import Store, read, tensors_of
from compositional.training.state import State

FACTS = {"device_name": "d", "versions": {}, "source": {}, "wall_seconds": 1.0, "finished": "then"}


def identity(seed: int) -> dict:
    return {"family": {"task": "t"}, "code": {"fingerprint": "f"}, "lambda": 0.1, "seed": seed, "data": "x", "device": "cpu"}


def entry_of(folder: Path, seed: int) -> Path:
    return folder / "entries" / f"{name_of(identity(seed))}.json"


def keep(folder: Path, seed: int, **about) -> Path:
    """A finished run, as the stage keeps it. The first one diverged; both have the same buffer."""
    state = State(seed, 0.1, 4, None if seed else 2, {}, [(4, "test", "loss", float("nan"))], 1.5)
    held = {"state": state.described(), "facts": FACTS, "identity": identity(seed)}
    Store(folder).add(name_of(identity(seed)), held | about, {"a": torch.full((20,), float(seed)), "b": torch.arange(3)})
    return entry_of(folder, seed)


@pytest.fixture
def packed(tmp_path) -> Path:
    """A file with two runs."""
    paths = [keep(tmp_path / "there", seed) for seed in (0, 1)]
    finished_runs.pack(tmp_path / "runs.zip", paths, ["ablation"])
    return tmp_path / "runs.zip"


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as stored:
        return {name: stored.read(name) for name in stored.namelist()}


def rewritten(path: Path, held: dict[str, bytes], right: bool = True) -> Path:
    """A file with other members; right: whether its index agrees with them."""
    if right:
        digests = {name: hashlib.sha256(payload).hexdigest() for name, payload in held.items() if name != finished_runs.INDEX}
        held = held | {finished_runs.INDEX: files.json_bytes({"format": 2, "figures": [], "entries": digests})}
    with zipfile.ZipFile(path, "w") as stored:
        for name, payload in held.items():
            stored.writestr(name, payload)
    return path


def unpacked(path: Path, store: Path) -> tuple[int, int]:
    """How many runs of a file are added to a store, and how many already existed."""
    added, there = finished_runs.unpack(path, store)
    return len(added), len(there)


def refused(path: Path, message: str) -> None:
    store = path.parent / "here"
    with pytest.raises(ArchiveError, match=message):
        finished_runs.unpack(path, store)
    assert [*store.rglob("*")] == []
    assert {own.name for own in path.parent.iterdir()} <= {"there", "here", "runs.zip"}  # nothing escaped


def test_a_file_whose_directory_promises_more_than_it_has_is_refused(packed):
    held = members(packed)
    with zipfile.ZipFile(packed, "w") as stored:
        for name, payload in held.items():
            stored.writestr(name, payload)
        last = stored.getinfo(finished_runs.INDEX)
        last.file_size = last.compress_size = last.file_size + sum(46 + len(name) for name in held) + 23  # one byte too many
    refused(packed, "can't be unpacked to .*/here: 'EOFError'$")


def test_packed_runs_are_added_only_once(packed, tmp_path):
    assert unpacked(packed, tmp_path / "here") == (2, 0)
    here, there = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "here", tmp_path / "there")
    )
    assert here == there
    assert len(there) == 4
    assert unpacked(packed, tmp_path / "here") == (0, 2)
    assert not [*(tmp_path / "here").rglob(".*")]


def test_equal_runs_give_equal_bytes(packed, tmp_path):
    finished_runs.pack(tmp_path / "again.zip", reversed([*entries([tmp_path / "there"])]), ["ablation"])
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_a_full_disk_leaves_no_incomplete_run(packed, tmp_path):
    before = packed.read_bytes()
    with full_disk():
        with pytest.raises(ArchiveError, match=r"can't be unpacked to .*here: '.*File too large"):
            finished_runs.unpack(packed, tmp_path / "here")
        with pytest.raises(OSError, match="File too large"):
            finished_runs.pack(packed, entries([tmp_path / "there"]), ["ablation"])
    assert [*(tmp_path / "here").rglob("*")] == []
    assert packed.read_bytes() == before
    assert not [*tmp_path.glob(".*")]


def test_existing_runs_are_replaced_only_if_they_are_damaged(packed, tmp_path):
    for seed in (0, 1):
        keep(tmp_path / "here", seed, facts=FACTS | {"device_name": "mine"})
    mine, damaged = (entry_of(tmp_path / "here", seed) for seed in (0, 1))
    damaged.write_bytes(damaged.read_bytes()[:-8])
    before = mine.read_bytes()
    assert unpacked(packed, tmp_path / "here") == (1, 1)
    assert mine.read_bytes() == before
    assert finished_runs.identity_of(damaged) == identity(1)


@pytest.mark.parametrize(
    "name",
    [
        "../escaped.json",
        "/escaped.json",
        "a/b.json",
        "notes.txt",
        f"cpu-{'0' * 64}.pkl",
        f"tpu-{'0' * 64}.json",
        f"cpu-{'0' * 64}.safetensors",
    ],
)
def test_a_member_with_an_unexpected_name_is_refused(packed, name):
    held = members(packed)
    refused(rewritten(packed, held | {name: b"x"}), "cannot be trusted")


def test_a_pickle_under_an_entry_s_name_is_refused_and_not_opened(packed, tmp_path):
    harmful = f"cos\nmkdir\n(V{tmp_path}/opened\ntR."  # whoever loads it makes a folder
    held = members(packed)
    for name in held.keys() - {finished_runs.INDEX}:
        refused(rewritten(packed, held | {name: harmful.encode()}), "is not a finished run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held, first, second: held | {first: held[second]}, "or not the one in its name"),
        (lambda held, first, second: held | {first: held[first].replace(b'"step": 4', b'"step": 5')}, "is not a finished run"),
        (lambda held, first, second: held | {f"cpu-{'0' * 64}.json": held[first]}, "or not the one in its name"),
        (lambda held, first, second: held | {f"weights-{'0' * 64}.safetensors": b""}, "belongs to no run"),
        (
            lambda held, first, second: {name: held[name][:-1] if "weights" in name else held[name] for name in held},
            "is not a finished",
        ),
        (lambda held, first, second: {name: held[name] for name in held if "weights" not in name}, "is not a finished run"),
    ],
)
def test_a_run_that_does_not_vouch_for_itself_is_refused_although_the_index_agrees(packed, change, message):
    held = members(packed)
    first, second = sorted(name for name in held if name.startswith("cpu-"))
    refused(rewritten(packed, change(held, first, second)), message)


@pytest.mark.parametrize(
    "about",
    [
        {"identity": identity(7)},
        {"identity": None},
        {"state": {}},
        {"state": State(3, 0.1).described()},
        {"state": State(0, 0.1, history=[(1, "test", "loss", "text")]).described()},
        {"state": State(0, 0.2).described()},
        {"state": State(0, 0.1, history=[("1", "test", "loss", 0.5)]).described()},
        {"state": State(0, 0.1).described() | {"seconds": "1"}},
        {"state": State(0, 0.1).described() | {"more": 1}},
        {"facts": {}},
        {"more": 1},
    ],
)
def test_a_malformed_run_is_refused(packed, tmp_path, about):
    path = keep(tmp_path / "there", 0, **about)
    held = members(packed)
    refused(rewritten(packed, held | {path.name: path.read_bytes()}), "is not a finished run")


def test_two_runs_with_the_same_weights_are_both_there(tmp_path):
    """In the file these weights are once."""
    for seed in (0, 1):
        about, _ = read(keep(tmp_path / "there", seed))
        Store(tmp_path / "there").add(name_of(identity(seed)), about, {"a": torch.zeros(20)})
    finished_runs.pack(tmp_path / "runs.zip", entries([tmp_path / "there"]), [])
    assert len(members(tmp_path / "runs.zip")) == 4
    assert unpacked(tmp_path / "runs.zip", tmp_path / "here") == (2, 0)
    assert all(read(path) for path in entries([tmp_path / "here"]))


@pytest.mark.parametrize(
    "tensors", [{"a": torch.zeros(2).double()}, {"a": torch.zeros(2), "b": torch.zeros(2).half()}, {"b": torch.arange(3)}, {}]
)
def test_malformed_weights_are_refused(packed, tmp_path, tensors):
    path = keep(tmp_path / "there", 0)
    about, _ = Store(tmp_path / "there").load(name_of(identity(0)))
    Store(tmp_path / "there").add(name_of(identity(0)), about, tensors)
    both = {one.name: one.read_bytes() for one in (path, tensors_of(path))}
    refused(rewritten(packed, members(packed) | both), "is not a finished run")


def test_a_wrong_index_is_refused(packed):
    held = members(packed)
    index = json.loads(held[finished_runs.INDEX])
    name = next(iter(index["entries"]))
    for wrong, message in (
        ({"entries": index["entries"] | {name: "0" * 64}}, "is not what its runs.json says"),
        ({"entries": {}}, "is missing in the file or in its"),
        ({"entries": index["entries"] | {f"cpu-{'0' * 64}.json": ""}}, "is missing in the file or in its"),
        ({"format": 1}, "it has format 1, this program reads 2"),
        ({"entries": 3}, "its runs.json cannot be read"),
    ):
        other = held | {finished_runs.INDEX: files.json_bytes(index | wrong)}
        refused(rewritten(packed, other, right=False), message)
    refused(rewritten(packed, {name: held[name]}, right=False), "has no runs.json")
    packed.write_bytes(b"no zip")
    refused(packed, "can't be unpacked")
