"""One file that others can open, rebuild and check: the manifest of a build, and the archive made from it.

An archive is a zip file of the sources, as they are in the repository, and of a folder archived/ with the build: manifest.json,
config.json (the effective configuration), source.json (the commit), tables, figures and their records, and optionally the raw
data. ro-crate-metadata.json describes it as a Workflow Run RO-Crate. Equal builds give equal bytes: members are sorted and stored
with one fixed date, and keys of records that differ from build to build (provenance.VOLATILE) are removed.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compositional import files
from compositional.archive import unpacking
from compositional.archive.layout import FOLDER, FORMAT, MANIFEST, METADATA, REBUILT, ArchiveError, is_kept
from compositional.plugins import declarations
from compositional.records import integrity, provenance, surroundings
from compositional.records.order import in_order, order_of

_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can hold


def _sha256(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()


def lasting_bytes(record: Path) -> bytes:
    """A record as an archive holds it, without the keys that differ from build to build."""
    return files.json_bytes(provenance.lasting(provenance.read(record)))


def sources() -> dict[str, Any]:
    """The commit of the sources, its date, whether files were altered since, and the sha256 of every file.

    In a git repository these are all files that git does not ignore, without results that were committed. In an unpacked archive
    they are the files of the archive.

    Raises:
        ArchiveError: the folder is neither.
    """
    about = provenance.source()
    if not about:
        raise ArchiveError(
            "an archive records the commit of its sources, but this folder is neither a git repository with a commit "
            f"nor an unpacked archive{f' ({why})' if (why := provenance.without_commit()) else ''}"
        )
    recorded = provenance.ROOT / provenance.SOURCE
    if recorded.exists():
        names = json.loads(recorded.read_text(encoding="utf-8"))["files"]
    else:
        listed = surroundings.git(provenance.ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        names = set(listed.split("\0"))
    paths = {name: provenance.ROOT / name for name in sorted(names) if name.split("/")[0] not in REBUILT}
    return about | {"files": {name: files.sha256(path) for name, path in paths.items() if path.is_file()}}


def listed(results: Path, records: Iterable[Path]) -> dict[str, Any]:
    """The runs, artifacts and records of a build, according to its records alone.

    Raises:
        FileNotFoundError: a record, or a file that it describes, is missing.
        DamagedFileError: a record was altered.
    """
    artifacts, described, runs = {}, {}, {}
    for record in records:
        known = provenance.vouched(record)
        if known is None:
            if record.is_file():
                raise integrity.DamagedFileError(f"{record} was altered or damaged. Call the same command again")
            raise FileNotFoundError(f"{record} is missing: the result that it describes was not built")
        described[str(record.relative_to(results))] = _sha256(lasting_bytes(record))
        for name, digest in known["files"].items():
            path = record.parent / name
            artifacts[str(path.relative_to(results))] = {"sha256": digest, "bytes": path.stat().st_size}
        if record.name == "run.json":
            runs[known["run"]] = known["status"]
    return {"runs": runs, "artifacts": artifacts, "records": described}


def manifest(
    results: Path, records: list[Path], raw: Iterable[Path], *, figures: list[str], config: dict[str, Any], lock: Path
) -> dict[str, Any]:
    """Every artifact of a build with its sha256, and everything that the build was made of.

    Args:
        results: the results folder.
        records: of all splits, runs, tables and figures of the build; the files that they describe are its artifacts.
        raw: downloaded files.
        figures: names of the build's figures.
        config: the effective configuration.
        lock: the file of pinned packages.

    Returns:
        "artifacts" have the same bytes whenever they are made again on the same kind of machine. "records" are listed with the
        sha256 of their `lasting_bytes`. "raw" holds data by <dataset>/<file>, with the declared license.

    Raises:
        DamagedFileError: a file does not match its record, or a raw file changed after splits were made from it.
        FileNotFoundError: a record is missing.
    """
    made_of: dict[str, str] = {}
    for record in records:
        known = provenance.vouched(record)
        if known and (bad := integrity.damaged(record, known, everything=True)):
            integrity.verify(bad[0])
        if known and record.parent.name == "splits":
            made_of |= {f"{known['dataset']}/{name}": digest for name, digest in known["raw_sha256"].items()}
    data = {}
    for path in raw:
        dataset = path.parent.name
        license_ = declarations(f"datasets.{dataset}")["LICENSE"] or {"name": "unknown", "redistribution": False}
        digest = files.sha256(path)
        if digest != made_of.get(f"{dataset}/{path.name}", digest):
            path.unlink()
            raise integrity.DamagedFileError(
                f"{path} was altered or damaged after splits were made from it, and is removed. Call the same command again to "
                "fetch it again"
            )
        data[f"{dataset}/{path.name}"] = {"sha256": digest, "bytes": path.stat().st_size, "license": license_}
    return {
        "format": FORMAT,
        "figures": figures,
        "source": sources(),
        "config": config,
        "order": order_of(config),
        "environment": provenance.environment(lock),
        "raw": data,
        **listed(results, records),
    }


def _configuration(built: dict[str, Any]) -> bytes:
    """The configuration of a manifest with its keys in their original order, which JSON with sorted keys loses."""
    return (json.dumps(in_order(built["config"], built["order"]), indent=2) + "\n").encode()


def write(destination: Path, results: Path, built: dict[str, Any], *, data: bool) -> None:
    """Write an archive of the sources and of a build.

    Args:
        destination: the zip file.
        results: the results folder.
        built: its manifest.
        data: include the raw data whose license allows it.

    Raises:
        ArchiveError: sources changed since the manifest was made, or the archive could not be unpacked elsewhere.
        DamagedFileError: a table or figure was altered after it was made.
    """
    members: dict[str, bytes] = {}
    for name, digest in built["source"]["files"].items():
        members[name] = (provenance.ROOT / name).read_bytes()
        if _sha256(members[name]) != digest:
            raise ArchiveError(
                f"{name} changed while the archive was made; call the same command again. Files that are written all the time "
                "must be outside this folder or in .gitignore"
            )
    members |= {
        MANIFEST: files.json_bytes(built),
        f"{FOLDER}/source.json": files.json_bytes(built["source"]),
        f"{FOLDER}/config.json": _configuration(built),
    }
    kept = [name for name in built["artifacts"] if is_kept(name)]
    for name in kept:
        integrity.verify(results / name)
    members |= {f"{FOLDER}/results/{name}": (results / name).read_bytes() for name in kept}
    members |= {f"{FOLDER}/results/{name}": lasting_bytes(results / name) for name in built["records"]}
    if data:
        allowed = [name for name, about in built["raw"].items() if about["license"]["redistribution"]]
        members |= {f"{FOLDER}/data/{name}": (results / "raw" / name).read_bytes() for name in allowed}
    from compositional.archive.ro_crate import describe  # imported here, because every call of Snakemake imports this module

    members[METADATA] = files.json_bytes(describe(members, built))
    with files.replacing(destination) as temporary:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(members):
                entry = zipfile.ZipInfo(name, _DATE)
                entry.create_system = 3  # Unix, on every system
                executable = name in built["source"]["files"] and (provenance.ROOT / name).stat().st_mode & 0o100
                entry.external_attr = (0o100755 if executable else 0o100644) << 16
                archive.writestr(entry, members[name])
        try:  # a source's name may differ from another one only in case
            with zipfile.ZipFile(temporary) as archive:
                unpacking.members_of(archive, temporary.stat().st_size)
        except ArchiveError as error:
            raise ArchiveError(
                f"this archive could not be unpacked: {error}. Rename that file, or list it in .gitignore"
            ) from error
