"""The store: whole or absent, altered counts as absent, checkpoints round-trip."""

from __future__ import annotations

import hashlib
import resource
from contextlib import contextmanager

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save

from compositional import files
from compositional.records.store import Store, key_of
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
