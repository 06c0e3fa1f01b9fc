"""Where an archive has what; see `archive.bundle`."""

from __future__ import annotations

FORMAT = 1
FOLDER = "archived"
MANIFEST = f"{FOLDER}/manifest.json"
METADATA = "ro-crate-metadata.json"
REBUILT = ("results", ".snakemake", ".venv")  # folders that a rebuild adds to an unpacked archive


class ArchiveError(ValueError):
    """No archive can be made or opened; the message says why."""


def is_kept(name: str) -> bool:
    """Whether an artifact's file goes into the archive: tables and figures do, others only with their sha256."""
    return name.split("/")[0] in ("tables", "figures")
