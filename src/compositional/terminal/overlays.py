"""Report a wrong --directory or --configfile (also one in a --profile) in a sentence, before Snakemake shows a traceback.

Called by profiles/default/config.yaml.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import yaml

from compositional.configuration import files
from compositional.configuration.messages import ConfigurationError
from compositional.terminal.refusals import permitting

SUFFIXES = (".yaml", ".yml", ".json")


def _after(arguments: list[str], option: str) -> Iterator[str]:
    """The words after an option in a command line, or after its equals sign. option: a regular expression."""
    for place, word in enumerate(arguments):
        if found := re.fullmatch(rf"(?:{option})(?:=(.*))?", word):
            behind = arguments[place + 1 :]
            yield from [found[1]] if found[1] is not None else takewhile(lambda own: not own.startswith("-"), behind)


def named(arguments: list[str], option: str = "--configfiles?") -> Iterator[Path]:
    """The files after --configfile, or after another option, in a command line. option: a regular expression."""
    return map(Path, filter(None, _after(arguments, option)))


def _there(path: Path) -> Path:
    """The path, or the innermost folder above it, that exists."""
    return next(own for own in (path.absolute(), *path.absolute().parents) if os.path.exists(own))


def wrong_setting(arguments: list[str]) -> str | None:
    """Why a word after --config is no setting, or sets a key again; None if all are right. Snakemake would end with a traceback,
    or forget all but the last value."""
    keys: set[str] = set()
    for word in _after(arguments, "-C|--config"):
        if not re.fullmatch(r"[a-zA-Z_][\w-]*\w=.*", word, re.DOTALL):
            return (
                f"--config {word}: write <key>=<value> without spaces around =, such as device=cpu, and targets before it. "
                "Keys below another key, such as a task's options, belong in a file for --configfile (config/README.md)"
            )
        if (key := word.partition("=")[0]) in keys:
            return f"--config {word}: {key} is set twice, write it once"
        keys.add(key)
    return None


def in_profile(arguments: list[str]) -> list[tuple[Path, Path]]:
    """The file of a command line's --profile, with each --configfile that it names literally, without YTE's expressions."""
    # Snakemake is running: it reads its profiles. Without this function, only this check is lost.
    find = getattr(sys.modules.get("snakemake.cli"), "get_profile_dir", None)
    profile = next(named(arguments, "--profile"), None)
    if not (found := find(str(profile)) if find and profile else None):
        return []
    try:
        content = yaml.safe_load(found[1].read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):  # Snakemake reports these itself
        return []
    names = content.get("configfile", content.get("configfiles")) if isinstance(content, dict) else None
    names = [names] if isinstance(names, str) else names or []
    return [(found[1], Path(name)) for name in names if isinstance(name, str) and not name.startswith("?")]


def refused(path: Path, root: Path = Path()) -> str | None:
    """Why a file cannot be an overlay, with the nearest file; None if it can. root: the repository's folder."""
    if path.parts[:1] == ("results",) and path.suffix not in SUFFIXES:
        return f"{path}: this is a target. Every word after --configfile is read as a file: write targets before it"
    if not path.exists() or path.is_dir():
        why = "this is a folder, not a file" if path.is_dir() else "there is no such file"
        shipped = Path(os.path.relpath(root)) / "config"
        folders = {path if path.is_dir() else path.parent, shipped, shipped / "paper"}
        known = sorted(str(own) for folder in folders if folder.is_dir() for own in folder.iterdir() if own.suffix in SUFFIXES)
        names = {Path(own).name: own for own in reversed(known)}
        close = difflib.get_close_matches(str(path), known, n=1) or difflib.get_close_matches(path.name, names, n=1)
        return f"{path}: {why}" + (f"; did you mean {names.get(close[0], close[0])}?" if close else "")
    try:
        if path.is_file():  # a pipe cannot be read twice
            files.read(path)
    except OSError as error:
        return f"{path}: it cannot be read: {error.strerror}"
    except ConfigurationError as error:
        return str(error)
    return None


def check(arguments: list[str], root: Path = Path()) -> None:
    """End this process with a message if a file of a command line or of its profile, or its --directory, is wrong.

    root: the repository's folder.
    """
    for option, words in (("--configfiles?", "--configfile a.yaml b.yaml"), ("--config|-C", "--config a=1 b=2")):
        # Snakemake forgets all but the last without a word.
        if sum(re.fullmatch(rf"({option})(=.*)?", word) is not None for word in arguments) > 1:
            sys.exit(f"{words.split()[0]} is given twice, and Snakemake would read the last one only: write {words}")
    if why := wrong_setting(arguments):
        sys.exit(why)
    asked = [("", path) for path in named(arguments)]
    # Files of the command line replace those of a profile.
    asked = asked or [(f"{profile}: ", path) for profile, path in in_profile(arguments)]
    if folder := next(named(arguments, "--directory|-d"), None):  # targets may follow
        if not (above := _there(folder)).is_dir():
            sys.exit(f"--directory {folder}: {above} is a file, not a folder")
        if above != folder.absolute() and not os.access(above, os.W_OK):
            sys.exit(f"--directory {folder}: it cannot be made, because {above} is not writable")
    here = (folder or Path()).absolute()
    if set("{}") & set(str(here)):
        sys.exit(f"{here}: Snakemake reads braces in a path as wildcards. Use a folder without braces in its path")
    if os.fsencode(here).decode(errors="replace") != str(here):
        sys.exit(f"{str(here)!a}: Snakemake cannot write a path that is not UTF-8 into its log. Use another folder")
    results, writes = here / "results", next((path for path in (here / ".snakemake", here) if path.exists()), None)
    if results.is_symlink() and not results.exists():
        sys.exit(f"{results} is a link to {results.readlink()}, which does not exist: make that folder, or remove the link")
    if results.exists() and not results.is_dir():
        sys.exit(f"{results} is a file, must be a folder: move it away")
    if writes and not os.access(writes, os.W_OK):
        sys.exit(f"{writes} is not writable. Snakemake writes there even if it only looks (-n): copy the folder, and look there")
    cache = Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache")) / "snakemake"
    if not os.access(above := _there(cache), os.W_OK):
        sys.exit(f"{above} is not writable. Snakemake needs {cache}: set XDG_CACHE_HOME to a folder in which you may write")
    if not {"--unlock", "--nolock"} & set(arguments):
        locks = here / ".snakemake" / "locks"
        closed = [path for path in (locks, *sorted(locks.glob("*.lock"))) if path.exists() and not os.access(path, os.R_OK)]
        if closed:
            sys.exit(
                f"{closed[0]} is the lock of another call, which you may not read{permitting(closed[0])}. If no build is "
                "running there, call the same command with --unlock first"
            )
    if wrong := [f"{place}--configfile {why}" for place, path in asked if (why := refused(path, root))]:
        sys.exit("\n".join(wrong))
