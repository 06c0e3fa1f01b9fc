"""Files that share their space: common blocks, one file with two names, or else a copy. Nothing is written into them."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save

from compositional import files
from compositional.records import links
from compositional.records.store import Store, tensors_of

TENSORS = {"a": torch.arange(50_000.0), "b": torch.ones(3)}


@pytest.fixture
def unable(monkeypatch):
    """unable(errno) has the system refuse to share blocks; unable(errno, errno) hard links, too."""

    def refuse(number: int):
        def call(*_):
            raise OSError(number, os.strerror(number))

        return call

    def patch(clone: int, link: int | None = None) -> None:
        monkeypatch.setattr(links.fcntl, "ioctl", refuse(clone))
        if link:
            monkeypatch.setattr(links.os, "link", refuse(link))

    return patch


def kept(folder: Path) -> tuple[Path, Path]:
    """A finished run's tensors in a store and in its own folder."""
    store = Store(folder / "store")
    store.add("plan/cpu-key", {}, TENSORS)
    store.write_tensors("plan/cpu-key", TENSORS, folder / "run" / "weights.safetensors")
    place = tensors_of(folder / "store/entries/plan/cpu-key.json")
    assert [path.read_bytes() for path in (place, folder / "run/weights.safetensors")] == [save(TENSORS)] * 2
    assert not [*folder.rglob(".*")]
    return place, folder / "run/weights.safetensors"


def test_weights_are_one_file_with_two_names(tmp_path, unable):
    unable(errno.EOPNOTSUPP)
    place, weights = kept(tmp_path)
    assert place.samefile(weights)
    # Written again, from either side, it stays one.
    kept(tmp_path)
    assert place.samefile(weights)
    assert place.stat().st_nlink == 2


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP])
def test_where_there_are_no_links_weights_are_copied(tmp_path, unable, number):
    unable(errno.ENOTTY, number)
    place, weights = kept(tmp_path)
    assert place.stat().st_nlink == weights.stat().st_nlink == 1


def test_a_file_that_others_may_read_otherwise_is_copied(tmp_path, unable):
    """The umask was another one when it was kept."""
    unable(errno.EOPNOTSUPP)
    before = os.umask(0o077)
    try:
        Store(tmp_path / "store").add("plan/cpu-key", {}, TENSORS)
    finally:
        os.umask(before)
    place, weights = kept(tmp_path)
    assert place.stat().st_mode != weights.stat().st_mode
    assert place.stat().st_nlink == 1


def test_a_file_that_this_user_may_not_write_to_is_copied(tmp_path, unable, monkeypatch):
    unable(errno.EOPNOTSUPP)
    monkeypatch.setattr(links.os, "access", lambda path, mode: False)
    place, weights = kept(tmp_path)
    assert place.stat().st_nlink == weights.stat().st_nlink == 1


def test_what_replaces_one_leaves_the_other(tmp_path):
    place, weights = kept(tmp_path)
    files.write_json(weights, "other")
    assert place.read_bytes() == save(TENSORS)
    Store(tmp_path / "store").write_tensors("plan/cpu-key", {"a": torch.zeros(3)}, weights)  # not what the store has
    assert load_file(weights)["a"].shape == (3,)
    kept(tmp_path)
    place.write_bytes(b"damaged")
    Store(tmp_path / "store").add("plan/cpu-key", {}, TENSORS)  # replaces it, as what it holds is not what its name says
    assert place.read_bytes() == save(TENSORS)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mkfs.btrfs"), reason="needs root and btrfs-progs")
def test_blocks_are_shared_where_the_file_system_can(tmp_path):
    image, folder = tmp_path / "image", tmp_path / "mounted"
    folder.mkdir()
    with image.open("wb") as stream:
        stream.truncate(128 * 2**20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, folder], check=False).returncode:
        pytest.skip("this machine can't mount it")
    try:
        place, weights = kept(folder)
        assert place.stat().st_nlink == weights.stat().st_nlink == 1
        said = subprocess.run(["btrfs", "filesystem", "du", "--raw", weights], check=True, capture_output=True, text=True).stdout
        total, own = map(int, said.splitlines()[1].split()[:2])
        assert (total > 200_000, own) == (True, 0)
        # Written to in place, only one is damaged.
        weights.write_bytes(b"damaged")
        assert place.read_bytes() == save(TENSORS)
    finally:
        subprocess.run(["umount", folder], check=True)


def test_what_snakemake_restores_is_written_under_one_name_only(tmp_path):
    """The change is made once, however often the workflow is read; without a backup the file keeps its bytes."""

    class Persistence:
        def backup_output(self, path: Path) -> None:
            shutil.copytree(path, path.with_suffix(".backup"))

        def cleanup_backup(self, path: Path) -> None:
            shutil.rmtree(path.with_suffix(".backup"), ignore_errors=True)

        def restore_output(self, path: Path) -> bool:
            if path.name == "restored":
                shutil.copyfile(tmp_path / "backup", path)
            return path.name == "restored"

    own = Persistence.restore_output
    module = SimpleNamespace(Persistence=Persistence, other=int)
    for _ in range(2):
        links.keep_backups_apart(module)
    assert Persistence.restore_output.__wrapped__ is own
    (tmp_path / "backup").write_text("old")
    for name, found in (("restored", "old"), ("kept", "new")):
        (tmp_path / name).write_text("new")
        os.link(tmp_path / name, tmp_path / f"{name} in the store")
        assert Persistence().restore_output(tmp_path / name) == (name == "restored")
        assert [(tmp_path / one).read_text() for one in (name, f"{name} in the store")] == [found, "new"]
    (tmp_path / "split").mkdir()
    for _ in range(2):  # a killed call leaves its copy
        Persistence().backup_output(tmp_path / "split")


def test_a_file_that_was_altered_is_still_newer_than_its_record_after_a_failed_repair(tmp_path):
    """Otherwise one failed or interrupted job would make a damaged figure count as up to date."""

    class Persistence:
        def backup_output(self, path: Path) -> None:
            shutil.copy(path, path.with_suffix(".backup"))

        def cleanup_backup(self, path: Path) -> None:
            path.with_suffix(".backup").unlink(missing_ok=True)

        def restore_output(self, path: Path) -> bool:
            shutil.copy(path.with_suffix(".backup"), path)
            return True

    links.keep_backups_apart(SimpleNamespace(Persistence=Persistence))
    record, figure = tmp_path / "figure.json", tmp_path / "figure.pdf"
    figure.write_text("drawn")
    record.write_text("{}")
    while figure.stat().st_ctime_ns <= record.stat().st_ctime_ns:  # the clock of a file system is coarse
        figure.write_text("altered")
    for path in (figure, record):
        Persistence().backup_output(path)
    for path in (figure, record):
        Persistence().restore_output(path)
    assert figure.stat().st_mtime_ns > record.stat().st_mtime_ns


def test_a_snakemake_that_restores_in_another_way_is_refused():
    with pytest.raises(
        ValueError, match=r"This Snakemake has no persistence.restore_output; use a version from envs/requirements"
    ):
        links.keep_backups_apart(SimpleNamespace(other=int))


def test_a_copy_that_another_call_disturbs_stops_no_build(tmp_path):
    """Two calls with --nolock make the same split, or a split's folder is a link."""

    class Keeper:
        def cleanup_backup(self, path: Path) -> None:
            raise OSError(39, "Directory not empty")

        def backup_output(self, path: Path) -> None: ...

        def restore_output(self, path: Path) -> bool:
            raise OSError("Cannot call rmtree on a symbolic link")

    module = ModuleType("persistence")
    module.Keeper = Keeper
    links.keep_backups_apart(module)
    Keeper().backup_output(tmp_path)
    assert Keeper().restore_output(tmp_path) is False
