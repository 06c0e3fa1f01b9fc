"""The store: entries are complete or absent, altered entries count as absent, and checkpoints round-trip."""

from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save, save_file
from support.disk import full_disk

from compositional import files
from compositional.plugins import PACKAGE
from compositional.records.entries import PLANNED, entries, name_of, stored
from compositional.records.store import Store, tensors_of
from compositional.stages.shared.job import logged
from compositional.training.state import State


def test_a_checkpoint_that_is_not_what_was_kept_counts_as_absent(tmp_path):
    store = Store(tmp_path)
    state = State(0, 0.0, tensors={"weights": torch.zeros(100)})
    assert store.load_checkpoint("key") is None
    store.save_checkpoint("key", state.described(), state.tensors)
    (path,) = tmp_path.glob("checkpoints/key.safetensors")
    whole = path.read_bytes()
    with safe_open(path, framework="pt") as stored:
        about = stored.metadata()
    flipped = whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:]
    states = [about["state"].replace('"step": 0', '"step": 9'), "null", "{}", "[]", '{"history": [], "x": 1}']
    others = [save({"weights": torch.zeros(10)}, about)]
    others += [save({"weights": torch.zeros(100)}, about | {"state": state}) for state in states]
    for content in (whole[:-50], flipped, save({"weights": torch.zeros(100)}), *others):
        path.write_bytes(content)
        assert store.load_checkpoint("key") is None
        assert not path.exists()  # or every later call would meet it again
    path.write_bytes(whole)
    assert State.restored(*store.load_checkpoint("key")).tensors["weights"].shape == (100,)


def test_an_entry_that_is_not_what_was_kept_counts_as_absent(tmp_path):
    """Its JSON file or its tensors; a path in it is not followed."""
    store, state = Store(tmp_path), State(0, 0.0, tensors={"weights": torch.zeros(100)})
    assert store.load("key") is None
    store.add("key", state.described(), state.tensors)
    entry = entry_of(tmp_path, "key")
    text, held = entry.read_bytes(), json.loads(entry.read_bytes())
    tensors = tensors_of(entry)
    whole = tensors.read_bytes()
    os.mkfifo(tmp_path / "fifo")  # to read it would wait for ever

    def signed(change: dict) -> bytes:
        changed = {key: value for key, value in (held | change).items() if key != "sha256"}
        return json.dumps(changed | {"sha256": files.digest(changed)}).encode()

    altered = [json.dumps(held | {"about": about}).encode() for about in (held["about"] | {"step": 9}, None, {}, [])]
    altered += [signed({"weights": name}) for name in ("0" * 64, f"/../../fifo{'x' * 53}", 3, None)] + [signed({"key": "other"})]
    for content in (text[:-9], b"", b"null", b"[" * 100_000, b"\xff", *altered):
        entry.write_bytes(content)
        assert store.load("key") is None
    entry.write_bytes(text)
    for content in (whole[:-50], whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:], save({"weights": torch.zeros(10)}), b""):
        tensors.write_bytes(content)
        assert store.load("key") is None
    tensors.unlink()
    assert store.load("key") is None
    store.add("key", state.described(), state.tensors)
    assert store.load("key")[1]["weights"].shape == (100,)


def test_files_that_were_exchanged_count_as_absent(tmp_path):
    store = Store(tmp_path)
    for add in (store.add, store.save_checkpoint):
        for seed, key in enumerate(("key1", "key2")):
            add(key, State(seed, 0.0).described(), {"weights": torch.full((3,), float(seed))})
    one, two = sorted(tmp_path.glob("checkpoints/*"))
    for first, second in ((one, two), (entry_of(tmp_path, "key1"), entry_of(tmp_path, "key2"))):
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)
    assert [load(key) for load in (store.load, store.load_checkpoint) for key in ("key1", "key2")] == [None] * 4


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


def entry_of(folder: Path, name: str) -> Path:
    return folder / "entries" / f"{name}.json"


def files_in(folder: Path) -> set[str]:
    """Of entries the names; a file of tensors that is of none, or a file that is not finished, too."""
    there = {path for path in folder.rglob("*") if path.is_file()}
    named = {path: {path, tensors_of(path)} for path in there if path.suffix == ".json"}
    return {path.name for path in there.difference(*named.values())} | {path.stem for path in named}


def kept(store: Store, key: str, seed: int = 0) -> OSError | None:
    return store.add(key, State(seed, 0.0).described(), {"weights": torch.full((50,), float(seed))})


def test_a_shared_store_is_read_first_and_written_first(tmp_path):
    shared = tmp_path / "shared"
    one, other = Store(shared, tmp_path / "one"), Store(shared, tmp_path / "other")
    assert kept(one, "key") is None
    assert other.load("key") is not None
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {shared / "entries"}
    one.save_checkpoint("begun", State(0, 0.0).described(), {"weights": torch.zeros(3)})
    assert other.load_checkpoint("begun") is None  # checkpoints are not shared between builds


def test_without_a_shared_store_only_the_builds_own_store_is_used(tmp_path):
    kept(Store(tmp_path), "key")
    assert Store(tmp_path / "empty", tmp_path).load("key") is not None


def test_a_read_only_shared_store_is_read_and_new_runs_go_to_the_builds_own_store(tmp_path):
    """Files instead of folders make the store read-only, even for the superuser."""
    shared = tmp_path / "shared"
    kept(Store(shared), "aaa", 1)
    (shared / "entries" / "plan").write_text("")
    store = Store(shared, tmp_path / "own")
    assert isinstance(kept(store, "plan/cpu-zzz"), OSError)
    assert entry_of(tmp_path / "own", "plan/cpu-zzz").is_file()
    assert store.load("aaa") is not None
    assert store.load("plan/cpu-zzz") is not None


def test_a_store_that_vanishes_in_the_middle_loses_nothing(tmp_path):
    shared = tmp_path / "shared"
    store = Store(shared, tmp_path / "own")
    kept(store, "aaa")
    store.save_checkpoint("bbb", State(0, 0.0).described(), {"weights": torch.zeros(3)})
    shutil.rmtree(shared)
    shared.write_text("")  # like a mount point that is no longer a folder
    assert store.load("aaa") is None
    assert store.load_checkpoint("bbb") is not None
    assert isinstance(kept(store, "bbb"), OSError)
    assert store.load("bbb") is not None
    assert not [*tmp_path.rglob(".*")]


def test_an_entry_that_another_user_does_not_let_others_read_stops_no_training(tmp_path, monkeypatch):
    """It is replaced, because the folder permits that."""
    shared, tensors = tmp_path / "shared", {"weights": torch.full((50,), 0.0)}
    kept(Store(shared), "plan/cpu-key")
    secret = {entry_of(shared, "plan/cpu-key"), tensors_of(entry_of(shared, "plan/cpu-key"))}
    whole = {path: path.stat().st_ino for path in secret}
    read_bytes = Path.read_bytes

    def refusing(path: Path) -> bytes:
        if path.stat().st_ino == whole.get(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", refusing)
    store = Store(shared, tmp_path / "own")
    assert store.load("plan/cpu-key") is None
    store.write_tensors("plan/cpu-key", tensors, tmp_path / "weights.safetensors")
    assert (tmp_path / "weights.safetensors").read_bytes() == save(tensors)
    assert kept(store, "plan/cpu-key") is None
    assert store.load("plan/cpu-key") is not None


def test_a_discarded_entry_that_may_not_be_deleted_is_named_like_the_others(tmp_path, monkeypatch):
    shared, own = tmp_path / "shared", tmp_path / "own"
    for folder in (shared, own):
        kept(Store(folder), "plan/cuda-key")
    paths, unlink = [entry_of(folder, "plan/cuda-key") for folder in (shared, own)], Path.unlink

    def refusing(path: Path, **options: bool) -> None:
        if shared in path.parents:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", refusing)
    assert Store(shared, own).discard("plan/cuda-other") == []
    assert Store(shared, own).discard("plan/cuda-key") == paths
    assert [path.exists() for path in paths] == [True, False]


def test_a_full_disk_leaves_existing_entries_intact(tmp_path):
    shared, store = tmp_path / "shared", Store(tmp_path / "shared", tmp_path / "own")
    kept(store, "aaa", 1)
    before = entry_of(shared, "aaa").read_bytes()
    with full_disk(), pytest.raises(OSError, match="File too large"):
        kept(store, "aaa", 2)
    assert entry_of(shared, "aaa").read_bytes() == before
    assert files_in(tmp_path) == {"aaa"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
def test_a_store_on_another_file_system_that_becomes_full_stays_intact(tmp_path):
    """There is room for three entries and the tensors of a fourth one."""
    shared = tmp_path / "shared"
    shared.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=92k", "none", shared], check=True)
    try:
        assert shared.stat().st_dev != tmp_path.stat().st_dev
        store = Store(shared, tmp_path / "own")
        refused = [
            store.add(f"plan/cpu-{seed}", State(seed, 0.0).described(), {"weights": torch.full((5000,), float(seed))})
            for seed in range(5)
        ]
        assert [error and error.errno for error in refused] == [None, None, None, errno.ENOSPC, errno.ENOSPC]
        assert [path.stem for path in entries([shared])] == ["cpu-0", "cpu-1", "cpu-2"]
        assert len(files_in(shared)) == 4
        assert not [*shared.rglob(".*")]
        assert files_in(tmp_path / "own") == {"cpu-3", "cpu-4"}
        for seed in range(5):
            about, tensors = store.load(f"plan/cpu-{seed}")
            assert (about["seed"], tensors["weights"].unique().tolist()) == (seed, [seed])
    finally:
        subprocess.run(["umount", shared], check=True)


def write_many(folder) -> None:
    for turn in range(150):
        assert kept(Store(folder / "shared", folder / "own"), f"key{turn % 3}") is None


def test_builds_that_write_to_a_store_simultaneously_see_complete_entries_or_none(tmp_path):
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=write_many, args=(tmp_path,)) for _ in range(2)]
    for writer in writers:
        writer.start()
    seen, store = 0, Store(tmp_path / "shared", tmp_path / "reader")
    while any(writer.is_alive() for writer in writers):
        for path in [entry_of(tmp_path / "shared", f"key{number}") for number in range(3)]:
            if path.exists():
                assert store.load(path.stem) is not None
                seen += 1
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert seen
    assert files_in(tmp_path / "shared") == {f"key{number}" for number in range(3)}


@pytest.mark.parametrize(("mask", "mode"), [(0o002, 0o664), (0o027, 0o640)])
def test_entries_follow_the_umask(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        kept(Store(tmp_path / "shared", tmp_path / "own"), "key")
    finally:
        os.umask(before)
    path = entry_of(tmp_path / "shared", "key")
    assert {stat.S_IMODE(one.stat().st_mode) for one in (path, tensors_of(path))} == {mode}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o777 & ~mask


def test_nothing_is_written_by_a_function_that_ignores_the_umask(tmp_path):
    """safetensors' save_file leaves files that only their owner can read; save gives the same bytes."""
    tensors = {"b": torch.arange(3.0), "a": torch.zeros(2, 2)}
    save_file(tensors, tmp_path / "file", {"x": "y"})
    assert (tmp_path / "file").read_bytes() == save(tensors, {"x": "y"})
    assert not [path for path in PACKAGE.rglob("*.py") if re.search(r"\bimport .*\bsave_file\b", path.read_text())]


IDENTITY = {"code": "a", "family": {"model": "é"}, "lambda": 0.1, "seed": 0, "data": "d", "device": "cpu"}


def test_names_of_entries_depend_on_every_part_of_the_identity():
    assert name_of(IDENTITY) == name_of(dict(reversed(IDENTITY.items())))
    changes = [{"seed": 1}, {"lambda": 1.0}, {"code": "b"}, {"family": {}}, {"data": "e"}, {"device": "cuda"}, {"buffers": "f"}]
    names = [name_of(IDENTITY | change) for change in ({}, *changes)]
    assert len({*names}) == len(names)
    # The first part of the name contains only what is known before there are data or a device.
    assert len({name.partition("/")[0] for name in names}) == 5


def test_a_name_holds_digests_of_sorted_json():
    """If the text changed, so would the names, and every run in the store would be trained again."""
    plan = b'{"code": "a", "family": {"model": "\\u00e9"}, "lambda": 0.1, "seed": 0}'
    whole = b'{"code": "a", "data": "d", "device": "cpu", "family": {"model": "\\u00e9"}, "lambda": 0.1, "seed": 0}'
    assert name_of(IDENTITY) == f"{hashlib.sha256(plan).hexdigest()}/cpu-{hashlib.sha256(whole).hexdigest()}"


def test_each_entry_is_found_once_by_plan_and_device(tmp_path):
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    for store, name in ((one, "plan/cpu-a"), (other, "plan/cpu-a"), (other, "plan/cuda-b"), (other, "more/cpu-c")):
        kept(store, name)
    (tmp_path / "one" / "entries" / "plan" / ".cpu-z.json").write_text("not finished")
    folders = [tmp_path / "one", tmp_path / "other", tmp_path / "none"]
    found = {where: [path.stem for path in entries(folders, *where)] for where in ((), ("plan",), ("plan", "cuda"), ("x",))}
    assert found == {(): ["cpu-a", "cpu-c", "cuda-b"], ("plan",): ["cpu-a", "cuda-b"], ("plan", "cuda"): ["cuda-b"], ("x",): []}
    assert next(entries(folders, "plan", "cpu")).is_relative_to(tmp_path / "one")


def test_a_job_that_cannot_write_its_log_states_why(tmp_path, capsys):
    with full_disk(), pytest.raises(SystemExit), logged(tmp_path / "log") as log:
        print("x" * 100_000, file=log)
    assert "OSError: [Errno 27] File too large" in capsys.readouterr().err


@pytest.mark.parametrize("own", [{}, {"buffers": "f"}], ids=["known before training", "with buffers"])
def test_runs_on_other_data_are_not_those_of_the_store(tmp_path, own):
    """Otherwise the host that submits jobs would train them, because it restores runs itself."""
    identity = IDENTITY | own | {"data": "0" * 64}
    Store(tmp_path).add(name_of(identity), {"identity": identity}, {"weights": torch.zeros(3)})
    planned = [{key: identity[key] for key in PLANNED}]
    asked = {data: stored([tmp_path], planned, "auto", data) for data in (None, "0" * 64, "1" * 64)}
    assert asked == {None: True, "0" * 64: True, "1" * 64: False}
    next(entries([tmp_path])).write_bytes(b"\xff")
    assert stored([tmp_path], planned, "auto", "0" * 64) == (not own)  # whether it is intact shows when it is read
