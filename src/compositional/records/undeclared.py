"""A plug-in may not depend on what no record states: files whose changes nothing would notice, and unseeded random numbers."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

from compositional.records.provenance import ROOT

# What is imported is noticed (records.fingerprint); the last two are what numba makes of it.
_CODE = (".py", ".pyc", ".so", ".nbi", ".nbc")
# Where the system and libraries have their files, if they are not in a hidden folder such as ~/.cache.
_LINUX = ("/dev", "/etc", "/lib", "/lib64", "/nix", "/opt", "/proc", "/run", "/sys", "/usr", "/var/cache", "/var/lib")
_MACOS = ("/Applications", "/Library", "/System")
_CACHES = ("HF_HOME", "HF_DATASETS_CACHE", "MPLCONFIGDIR", "XDG_CACHE_HOME")  # variables that name such folders
NO_FILES_OF_MODELS = (
    "a model or a regularizer may read no file, because results would not be made again if it changed; let a task write what the "
    "file has to task.json"
)
_rules: list[tuple[list[Path], str, bool]] = []


def _refuse(event: str, arguments: tuple) -> None:
    """An audit hook: stops what reads another file than those allowed now."""
    if event != "open" or not _rules or not isinstance(arguments[0], str | bytes | os.PathLike):
        return
    path, mode, flags = Path(os.path.abspath(os.fsdecode(arguments[0]))), arguments[1], arguments[2]
    allowed, why, everywhere = _rules[-1]
    if any(letter in mode for letter in "wax") if mode else flags & (os.O_WRONLY | os.O_RDWR):
        return
    project = Path.cwd(), ROOT
    # Installed libraries and temporary files may be there, too.
    others = [Path(folder) for folder in (sys.prefix, sys.base_prefix, tempfile.gettempdir())]
    if _within(path, project):
        others = [folder for folder in others if _within(folder, project)]
    elif not everywhere or any(part.startswith(".") for part in path.parts):
        return
    else:
        others += map(Path, filter(None, (*_LINUX, *_MACOS, *sys.path, *map(os.environ.get, _CACHES))))
    if _within(path, [*others, *allowed]) or path.suffix in _CODE or "__pycache__" in path.parts:
        return
    raise PermissionError(f"{why}: not {path}")


def _within(path: Path, folders: Iterable[Path]) -> bool:
    return any(folder == path or folder in path.parents for folder in folders)


sys.addaudithook(_refuse)


@contextmanager
def refused(allowed: Sequence[Path], why: str, everywhere: bool = False) -> Iterator[None]:
    """Within the context, Python can read no files of the working folder and of the sources but those allowed, and code.

    Args:
        why: the beginning of the error.
        everywhere: whether other folders count, too, except those of libraries and of the system.
    """
    _rules.append(([named for path in allowed for named in (path.absolute(), path.resolve())], why, everywhere))
    try:
        yield
    finally:
        _rules.pop()


def global_generators() -> tuple:
    """The states of Python's generator, and of NumPy's and PyTorch's if these are imported. No run owns and no checkpoint keeps
    them."""
    numpy, torch = map(sys.modules.get, ("numpy", "torch"))
    own = numpy.random.get_state(legacy=False) if numpy else None
    return (
        random.getstate(),
        own and (own["state"]["key"].tobytes(), own["state"]["pos"], own["has_gauss"]),
        torch.get_rng_state().numpy().tobytes() if torch else None,
    )


def was_drawn(before: tuple) -> bool:
    """Whether random numbers were drawn since `before`, a result of `global_generators`; libraries may be imported since then."""
    return any(one not in (None, other) for one, other in zip(before, global_generators(), strict=True))


@contextmanager
def no_random_numbers(function: str) -> Iterator[None]:
    """Refuse a function, by its name, that draws from global generators within the context: each call would give other results.

    Nor may code of this project give None as the seed of `np.random.default_rng` or `random.Random`. (Libraries may: some never
    use what they make.) Where nothing is given, `records.forbidden` refuses it as it is written.
    """

    def refuse(generator: str) -> NoReturn:
        raise ValueError(
            f"{function} draws random numbers from {generator}, so each call gives another result. Draw from "
            "compositional.randomness.generator(key), or from a generator with a seed of its own"
        )

    def is_plug_in(depth: int) -> bool:
        return str(sys._getframe(depth + 1).f_globals.get("__name__")).startswith("compositional.")

    def default_rng(given: Any = None) -> Any:
        if given is None and is_plug_in(1):
            refuse("default_rng with None as its seed")
        return made(given)

    def seed(self: random.Random, given: Any = None, version: int = 2) -> None:
        if given is None and (is_plug_in(1) or is_plug_in(2)):  # called by itself, or as the generator is made
            refuse("random.Random with None as its seed")
        seeded(self, given, version)

    numpy: Any = sys.modules.get("numpy")
    before, seeded, made = global_generators(), random.Random.seed, numpy and numpy.random.default_rng
    of_python: Any = random.Random
    try:
        of_python.seed = seed
        if numpy:
            numpy.random.default_rng = default_rng
        yield
    finally:
        of_python.seed = seeded
        if numpy:
            numpy.random.default_rng = made
    if was_drawn(before):
        refuse("a global generator of Python, NumPy or PyTorch")


def watched(function: Callable, why: str, everywhere: bool = False) -> Callable:
    """A function of a plug-in, which is stopped if it reads a file or draws random numbers without a seed; options as above."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        with refused([], why, everywhere), no_random_numbers(f"{function.__module__}.{function.__name__}"):
            return function(*arguments)

    return call
