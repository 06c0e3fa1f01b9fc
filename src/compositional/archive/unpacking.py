"""Open an archive from others: its content is checked before any of it is written."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import stat
import zipfile
from io import BufferedIOBase
from pathlib import Path
from typing import Any, cast

from compositional import files
from compositional.archive.layout import FOLDER, FORMAT, MANIFEST, METADATA, REBUILT, ArchiveError, is_kept
from compositional.records.places import ENDINGS, record_of

_NEVER = {".snakemake", ".venv", "__pycache__", ".git"}  # refused in any folder: they hold code that runs unnoticed
_ANY: Any = ...  # stands for every name
# The parts of a manifest that are read, and their types.
_FORM = {
    "figures": [str],
    "source": {"commit": str, "files": {_ANY: str}},
    "config": {},
    "environment": {"python": str, "packages": {_ANY: (str, type(None))}},
    "raw": {_ANY: {"sha256": str}},
    "runs": {_ANY: str},
    "artifacts": {_ANY: {"sha256": str}},
    "records": {_ANY: str},
}


def _fits(form: Any, value: Any) -> bool:
    """Whether a value matches a form: a type, a list with one form, or a dictionary with a form under each name."""
    if isinstance(form, list):
        return isinstance(value, list) and all(_fits(form[0], own) for own in value)
    if isinstance(form, dict):
        names = value if _ANY in form else form
        return isinstance(value, dict) and all(
            name in value and _fits(form.get(_ANY, form.get(name)), value[name]) for name in names
        )
    return isinstance(value, form)


def _misfit(built: dict[str, Any]) -> str | None:
    """Why this program cannot compare a rebuild with a manifest, in words; None if it can."""
    for key, form in _FORM.items():
        if not _fits(form, built[key]):
            return f"its {key} have another form than this program reads"
    shown = [(kind, name) for name in built["figures"] for kind in ("tables", "figures")]
    needed = [f"{kind}/{name}{ending}" for kind, name in shown for ending in ENDINGS[kind]]
    needed += [record_of(kind, name) for kind, name in shown]
    missing = [name for name in needed if name not in built["artifacts"] | built["records"]]
    if not needed or missing:
        return f"it lists no {missing[0]}" if missing else "it lists no figure"
    return None


def _named(built: dict[str, Any]) -> dict[str, str]:
    """The sha256 of every member that a manifest lists, except those about the archive itself."""
    named = dict(built["source"]["files"])
    named |= {f"{FOLDER}/results/{name}": about["sha256"] for name, about in built["artifacts"].items() if is_kept(name)}
    return named | {f"{FOLDER}/results/{name}": digest for name, digest in built["records"].items()}


def _data(built: dict[str, Any]) -> dict[str, str]:
    """The sha256 of the raw files that the archive may contain."""
    return {f"{FOLDER}/data/{name}": about["sha256"] for name, about in built["raw"].items()}


def _about(built: dict[str, Any]) -> dict[str, Any]:
    """The required content of the files about the archive."""
    return {f"{FOLDER}/source.json": built["source"], f"{FOLDER}/config.json": built["config"]}


def members_of(stored: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The members of a zip file of `size` bytes by name, according to its directory alone.

    Raises:
        ArchiveError: a member has a name or a form that our archives never have.
    """
    members: dict[str, zipfile.ZipInfo] = {}
    taken: set[str] = set()
    for entry in stored.infolist():
        name = entry.orig_filename
        parts = name.split("/")
        odd = not name.isprintable() or "\\" in name or any(part in ("", ".", "..") for part in parts)
        seen = [part.casefold() for part in parts]  # some file systems ignore case
        if odd or seen[0] in REBUILT or set(seen) & _NEVER or seen[-1].endswith((".pyc", ".pyo")):
            raise ArchiveError(f"it holds {name!a}, which no archive of this project does")
        if name.casefold() in taken:
            raise ArchiveError(f"it holds {name!a} twice")
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG) or entry.flag_bits & 1:
            raise ArchiveError(f"{name!a} is a link or encrypted, not a plain file")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ArchiveError(f"{name!a} is compressed; archives of this project are not")
        members[name] = entry
        taken.add(name.casefold())
    if sum(entry.file_size for entry in members.values()) > size:
        raise ArchiveError("its members are larger than it is")
    return members


def check(stored: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> None:
    """Refuse members that the archive's manifest does not name, or that differ from it.

    Raises:
        ArchiveError: there is such a member, or no manifest that this program can read.
    """
    if MANIFEST not in members:
        raise ArchiveError(f"it is not an archive of this project: it has no {MANIFEST}")
    try:
        built = json.loads(stored.read(members[MANIFEST]))
        if built["format"] != FORMAT:
            raise ArchiveError(f"it has format {built['format']!r}, this program reads {FORMAT}")
        if wrong := _misfit(built):
            raise ArchiveError(f"its manifest does not fit: {wrong}")
        named, data, about = _named(built), _data(built), _about(built)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, ArchiveError):
            raise
        raise ArchiveError(f"its {MANIFEST} cannot be read ({type(error).__name__})") from error
    needed = {*named, *about, MANIFEST, METADATA}
    if extra := sorted(members.keys() - needed - data.keys()):
        raise ArchiveError(f"its manifest does not name {len(extra)} of its files, such as {extra[0]!a}")
    if missing := sorted(needed - members.keys()):
        raise ArchiveError(f"{len(missing)} files that its manifest names are missing, such as {missing[0]!a}")
    for name, digest in (named | data).items():
        if name in members:
            with stored.open(members[name]) as stream:
                if hashlib.file_digest(cast(BufferedIOBase, stream), "sha256").hexdigest() != digest:
                    raise ArchiveError(f"{name!a} is not what its manifest says")
    for name, value in about.items():
        if json.loads(stored.read(members[name])) != value:
            raise ArchiveError(f"{name!a} is not what its manifest says")


def unpack(archive: Path, folder: Path) -> None:
    """Unpack into a new folder and make scripts executable again. Everything is checked before the first file is written.

    A folder into which an earlier call unpacked the same archive is left as it is: it may hold a part of a rebuild.

    Raises:
        ArchiveError: the file is not one of our archives, does not match its own manifest, or the folder holds something else.
            Nothing is left behind.
    """
    earlier = (folder / MANIFEST).read_bytes() if (folder / MANIFEST).is_file() else None
    if folder.exists() and earlier is None and not (folder.is_dir() and not any(folder.iterdir())):
        raise ArchiveError(f"{folder} is not an empty folder")
    if earlier is None and folder.is_mount():
        raise ArchiveError(
            f"{folder} is a mount point, which cannot be replaced: name a folder in it, such as {folder / 'rebuilt'}"
        )
    try:
        with zipfile.ZipFile(archive) as stored:
            members = members_of(stored, archive.stat().st_size)
            check(stored, members)
            manifest = stored.read(members[MANIFEST])
            if earlier is None:
                _write(stored, members, folder)
    except ArchiveError as error:
        raise ArchiveError(f"{archive} cannot be trusted: {error}") from error
    except Exception as error:  # a damaged zip file may raise almost any exception
        raise ArchiveError(f"{archive} can't be unpacked: {str(error) or type(error).__name__!a}") from error
    if earlier is not None and (
        wrong := "it is of another archive" if earlier != manifest else next(iter(altered(folder)), None)
    ):
        raise ArchiveError(f"{folder} is not an empty folder, and no rebuild of {archive} can continue there: {wrong}")


def _write(stored: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], folder: Path) -> None:
    """Write the members of an archive into a new folder."""
    with files.replacing_folder(folder) as temporary:
        for name, entry in members.items():
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with stored.open(entry) as source, target.open("wb") as stream:
                shutil.copyfileobj(source, stream)
            target.chmod(0o755 if entry.external_attr >> 16 & 0o100 else 0o644)


def altered(folder: Path) -> list[str]:
    """Differences between an unpacked archive and its manifest: altered, missing and additional files."""
    built = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    found = []
    for name, digest in _named(built).items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name} is missing")
        elif files.sha256(path) != digest:
            found.append(f"{name} was altered")
    for name, value in _about(built).items():
        try:
            same = json.loads((folder / name).read_text(encoding="utf-8")) == value
        except (OSError, ValueError):  # it is missing, or no JSON
            same = False
        if not same:
            found.append(f"{name} was altered")
    known = {*_named(built), *_data(built), *_about(built), MANIFEST, METADATA}
    for path in sorted(path for top in folder.iterdir() if top.name not in REBUILT for path in (top, *top.rglob("*"))):
        name = path.relative_to(folder).as_posix()
        # Python compiles sources, and pip describes the package in src/ when `make env` installs it in place.
        made = "__pycache__" in path.parts or re.fullmatch(r"src/\w+\.egg-info/[^/]+", name)
        if path.is_file() and name not in known and not made:
            found.append(f"{name} is not in the manifest")
    for name, digest in _data(built).items():
        path = folder / name
        if path.is_file() and files.sha256(path) != digest:
            found.append(f"{name} was altered")
    return found
