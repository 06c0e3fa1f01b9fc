"""The store: whole or absent, altered counts as absent, checkpoints round-trip."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
import resource
import shutil
import stat
from contextlib import contextmanager

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save, save_file

from compositional import files
from compositional.plugins import PACKAGE
from compositional.records.store import Store, entry_of, key_of
from compositional.stages.shared.job import logged
from compositional.training.state import State


@pytest.mark.parametrize("kind", ["entry", "checkpoint"])
def test_what_is_not_what_was_kept_counts_as_absent(tmp_path, kind):
    store = Store(tmp_path)
    state = State(0, 0.0, tensors={"weights": torch.zeros(100)})
    add, load, folder = {
        "entry": (store.add, store.load, "entries/ke"),
        "checkpoint": (store.save_checkpoint, store.load_checkpoint, "checkpoints"),
    }[kind]
    assert load("key") is None
    add("key", state.described(), state.tensors)
    (path,) = tmp_path.glob(f"{folder}/key.safetensors")
    whole = path.read_bytes()
    with safe_open(path, framework="pt") as stored:
        about = stored.metadata()
    flipped = whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:]
    states = [about["state"].replace('"step": 0', '"step": 9'), "null", "{}", "[]", '{"history": [], "x": 1}']
    others = [save({"weights": torch.zeros(10)}, about)]
    others += [save({"weights": torch.zeros(100)}, about | {"state": state}) for state in states]
    for content in (whole[:-50], flipped, save({"weights": torch.zeros(100)}), *others):
        path.write_bytes(content)
        assert load("key") is None
        assert path.exists() == (kind == "entry")  # a checkpoint is removed, or every later call would meet it again
    path.write_bytes(whole)
    assert State.restored(*load("key")).tensors["weights"].shape == (100,)


@pytest.mark.parametrize("kind", ["entry", "checkpoint"])
def test_files_that_were_exchanged_count_as_absent(tmp_path, kind):
    store = Store(tmp_path)
    add, load = {"entry": (store.add, store.load), "checkpoint": (store.save_checkpoint, store.load_checkpoint)}[kind]
    for seed, key in enumerate(("key1", "key2")):
        add(key, State(seed, 0.0).described(), {"weights": torch.zeros(3)})
    one, two = sorted(tmp_path.rglob("*.safetensors"))
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    assert (load("key1"), load("key2")) == (None, None)


def test_a_finished_run_has_no_checkpoint(tmp_path):
    store = Store(tmp_path)
    state = State(3, 0.1, 40, 20, {"weights": torch.randn(5)}, [(40, "test", "loss", float("nan"))], 1.5)
    store.save_checkpoint("key", state.described(), state.tensors)
    store.add("key", {"state": state.described(), "facts": {"device_name": "d"}}, state.tensors)
    assert store.load_checkpoint("key") is None
    about, tensors = store.load("key")
    assert repr(State.restored(about["state"], tensors).history) == repr(state.history)
    assert torch.equal(tensors["weights"], state.tensors["weights"])
    assert about["facts"] == {"device_name": "d"}


def test_checkpoints_round_trip_bit_for_bit(tmp_path):
    store = Store(tmp_path)
    tensors = {"weights": torch.randn(5), "first_moment": torch.randn(5)}
    state = State(3, 0.1, 40, None, tensors, [(40, "test", "loss", 0.1), (40, "test", "accuracy", float("nan"))], 1.5)
    store.save_checkpoint("key", state.described(), state.tensors)
    loaded = State.restored(*store.load_checkpoint("key"))
    assert repr(loaded.history) == repr(state.history)
    assert all(torch.equal(loaded.tensors[name], tensors[name]) for name in tensors)
    assert (loaded.seed, loaded.strength, loaded.step, loaded.seconds) == (3, 0.1, 40, 1.5)
    assert store.load_checkpoint("none") is None


def kept(store: Store, key: str, seed: int = 0) -> OSError | None:
    return store.add(key, State(seed, 0.0).described(), {"weights": torch.full((50,), float(seed))})


def test_a_shared_store_is_looked_in_first_and_written_first(tmp_path):
    shared, one, other = (
        tmp_path / "shared",
        Store(tmp_path / "one", tmp_path / "shared"),
        Store(tmp_path / "other", tmp_path / "shared"),
    )
    assert kept(one, "key") is None
    assert other.load("key") is not None
    assert [path.parent for path in tmp_path.rglob("*.safetensors")] == [shared / "entries" / "ke"]
    one.save_checkpoint("begun", State(0, 0.0).described(), {"weights": torch.zeros(3)})
    assert other.load_checkpoint("begun") is None  # runs in training are a build's own


def test_without_a_shared_store_nothing_is_different(tmp_path):
    kept(Store(tmp_path), "key")
    assert Store(tmp_path, tmp_path / "empty").load("key") is not None


def test_a_store_that_can_only_be_read_is_read_and_what_is_new_is_kept_by_the_build(tmp_path):
    """Files where folders must be: they stop the superuser, too."""
    shared = tmp_path / "shared"
    kept(Store(shared), "aaa", 1)
    (shared / "entries" / "zz").write_text("")
    store = Store(tmp_path / "own", shared)
    assert isinstance(kept(store, "zzz"), OSError)
    assert entry_of(tmp_path / "own", "zzz").is_file()
    assert store.load("aaa") is not None
    assert store.load("zzz") is not None


def test_a_store_that_vanishes_in_the_middle_loses_nothing(tmp_path):
    shared = tmp_path / "shared"
    store = Store(tmp_path / "own", shared)
    kept(store, "aaa")
    store.save_checkpoint("bbb", State(0, 0.0).described(), {"weights": torch.zeros(3)})
    shutil.rmtree(shared)
    shared.write_text("")  # as a mount point that is no folder any more
    assert store.load("aaa") is None
    assert store.load_checkpoint("bbb") is not None
    assert isinstance(kept(store, "bbb"), OSError)
    assert store.load("bbb") is not None
    assert not [*tmp_path.rglob(".*")]


def test_a_full_store_is_left_as_it_was(tmp_path):
    shared, store = tmp_path / "shared", Store(tmp_path / "own", tmp_path / "shared")
    kept(store, "aaa", 1)
    before = entry_of(shared, "aaa").read_bytes()
    with full_disk(), pytest.raises(Exception, match=r"(?i)file too large"):
        kept(store, "aaa", 2)
    assert entry_of(shared, "aaa").read_bytes() == before
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["aaa.safetensors"]


def write_many(folder) -> None:
    for turn in range(150):
        assert kept(Store(folder / "own", folder / "shared"), f"key{turn % 3}") is None


def test_builds_that_write_one_store_at_once_see_whole_entries_or_none(tmp_path):
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=write_many, args=(tmp_path,)) for _ in range(2)]
    for writer in writers:
        writer.start()
    seen, store = 0, Store(tmp_path / "reader", tmp_path / "shared")
    while any(writer.is_alive() for writer in writers):
        for path in [entry_of(tmp_path / "shared", f"key{number}") for number in range(3)]:
            if path.exists():
                assert store.load(path.stem) is not None
                seen += 1
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert seen
    assert sorted(path.name for path in (tmp_path / "shared").rglob("*") if path.is_file()) == [
        f"key{number}.safetensors" for number in range(3)
    ]


@pytest.mark.parametrize(("mask", "mode"), [(0o002, 0o664), (0o027, 0o640)])
def test_entries_follow_the_umask(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        kept(Store(tmp_path / "own", tmp_path / "shared"), "key")
    finally:
        os.umask(before)
    path = entry_of(tmp_path / "shared", "key")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o777 & ~mask


def test_nothing_is_written_by_a_function_that_ignores_the_umask(tmp_path):
    """safetensors' save_file leaves files that only their owner can read; with save, the bytes are the same."""
    tensors = {"b": torch.arange(3.0), "a": torch.zeros(2, 2)}
    save_file(tensors, tmp_path / "file", {"x": "y"})
    assert (tmp_path / "file").read_bytes() == save(tensors, {"x": "y"})
    assert not [path for path in PACKAGE.rglob("*.py") if re.search(r"\bimport .*\bsave_file\b", path.read_text())]


def test_keys_follow_every_part_of_the_identity():
    identity = {"code": "a", "family": {"model": "m"}, "seed": 0}
    assert key_of(identity) == key_of({"seed": 0, "family": {"model": "m"}, "code": "a"})
    assert len({key_of(identity), key_of(identity | {"seed": 1}), key_of(identity | {"code": "b"})}) == 3


def test_a_key_is_the_digest_of_sorted_json():
    """From other text, keys would be others, and every run in the store would be trained again."""
    assert key_of({"b": [0.1, None], "a": "é"}) == hashlib.sha256(b'{"a": "\\u00e9", "b": [0.1, null]}').hexdigest()


def write_half_and_fail(target):
    with files.replacing(target) as temporary:
        temporary.write_text("half")
        raise OSError("disk full")


def test_a_file_that_cannot_be_finished_is_not_there(tmp_path):
    target = tmp_path / "file.json"
    target.write_text("old")
    with pytest.raises(OSError, match="full"):
        write_half_and_fail(target)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


@contextmanager
def full_disk():
    """No file grows: as on a full disk, writing fails with an OSError."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_job_that_cannot_even_write_its_log_says_why(tmp_path, capsys):
    with full_disk(), pytest.raises(SystemExit), logged(tmp_path / "log") as log:
        print("x" * 100_000, file=log)
    assert "OSError: [Errno 27] File too large" in capsys.readouterr().err
