"""The configuration: checked completely before any job starts, then cut into the parts that each job depends on.

Its schema is config/schema.yaml plus what the modules declare (compositional.plugins): the options of a task, model or
regularizer are documented, given defaults and checked in the module that uses them. The modules of this folder import only those
before them in this list: messages, signatures, schema, entries and series, compatibility, names, figures, files (which checks
files before they are merged), and this one. `documentation`, which writes docs/options.md, is separate.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache, reduce
from pathlib import Path
from typing import Any

import yaml

from compositional.configuration import compatibility
from compositional.configuration.entries import Entries
from compositional.configuration.figures import options_given, sources, wrong_figures
from compositional.configuration.files import merged, named, read, shipped
from compositional.configuration.messages import SECTIONS, ConfigurationError, options_for
from compositional.configuration.schema import check, declared_by
from compositional.configuration.series import written_out
from compositional.plugins import available
from compositional.records.provenance import ROOT
from compositional.runs import Run


def _plain(value: Any) -> Any:
    """The same value in plain dictionaries and lists. Snakemake reads JSON files into ordered ones, which YAML cannot write.

    Keys become text, because YAML reads a bare 5 as a number.
    """
    if isinstance(value, dict):
        return {str(key): _plain(own) for key, own in value.items()}
    return [_plain(own) for own in value] if isinstance(value, list) else value


@cache
def _schema() -> dict:
    return yaml.safe_load((ROOT / "config" / "schema.yaml").read_text(encoding="utf-8"))


class Configuration(Entries):
    """A checked configuration."""

    def __init__(self, config: dict[str, Any], written: Iterable[Path] = (), otherwise: str = "") -> None:
        """Check `config` against the schema and the modules.

        Args:
            written: the files that it was merged from. otherwise: a name for where the rest is from.

        Raises:
            ConfigurationError: the message lists every problem, with its file.
        """
        self._given = _plain(config)
        problems = check(self._given, _schema())
        if not problems:
            expanded, problems = written_out(self._given)
            super().__init__(expanded)
            problems += [line for section in SECTIONS for name in expanded[section] for line in self.wrong_entry(section, name)]
            known = ["default", *sorted({*self._given["tasks"], *self.names("tasks")})]
            problems += [
                f"pack_size.{device}: unknown task {name!r}{options_for(name, known)}"
                for device, sizes in self._given["pack_size"].items()
                for name in sizes
                if name not in known
            ]
        # The tasks of a series may have the same problem.
        problems = list(dict.fromkeys(problems)) or wrong_figures(self)
        if problems:
            lines = [f"  - {named(line, self._given, written, otherwise)}" for line in problems]
            raise ConfigurationError("\n".join(["The configuration is wrong:", *lines]))

    def impossible(self, task: str, model: str, regularizer: str) -> list[str]:
        """Why this combination cannot be trained; empty if it can."""
        return compatibility.impossible(self, task, model, regularizer)

    def check_name(self, kind: str, name: str) -> None:
        """Refuse a requested figure or task that does not exist.

        Raises:
            ConfigurationError: the message names the nearest match.
        """
        known = sorted(self.figures) if kind == "figure" else self.names("tasks")
        if name not in known:
            raise ConfigurationError(f"unknown {kind} {name!r}{options_for(name, known)}")

    def check_run(self, run: Run) -> None:
        """Refuse a run, requested by its path, that the configuration cannot make.

        Raises:
            ConfigurationError: the message says what is unknown, or why the combination is impossible.
        """
        for section, name in (("tasks", run.task), ("models", run.model), ("regularizers", run.regularizer)):
            if name not in (known := self.names(section)) and (section, name) != ("regularizers", "none"):
                raise ConfigurationError(f"{run.path}: unknown {SECTIONS[section]} {name!r}{options_for(name, known)}")
        if (run.regularizer == "none") != (run.strength == 0):
            asked = "ask for none/lambda=0, or for a regularizer with a lambda above 0"
            raise ConfigurationError(f"{run.path}: lambda is 0 if and only if the regularizer is 'none'; {asked}")
        too_much = compatibility.wrong_strengths(self, run.regularizer, [run.strength]) if run.regularizer != "none" else []
        if problems := [*self.impossible(run.task, run.model, run.regularizer), *too_much]:
            raise ConfigurationError(f"{run.path}: {'; '.join(problems)}")

    def knows(self, run: Run) -> bool:
        """Whether the configuration can make a run."""
        try:
            self.check_run(run)
        except ConfigurationError:
            return False
        return True

    def check_raw_file(self, dataset: str, name: str) -> None:
        """Refuse a requested download that does not exist.

        Raises:
            ConfigurationError: the message names the nearest match.
        """
        what, wanted, known = "dataset", dataset, list(available("datasets"))
        if dataset in known:
            what, wanted, known = f"file of {dataset}", name, sorted(declared_by(f"datasets.{dataset}")["FILES"])
        if wanted not in known:
            raise ConfigurationError(f"there is no {what} {wanted!r}{options_for(wanted, known)}")

    @property
    def archived(self) -> list[str]:
        """Names of the figures that go into the manifest, the archive and the report."""
        chosen = self.config["archive"]["figures"]
        return sorted(self.figures) if chosen == "all" else list(chosen)

    @property
    def portable(self) -> dict[str, Any]:
        """The given configuration without the settings of this machine. As an overlay on config.yaml it gives the same build."""
        return {**self._given, "mirror": None, "store": None}

    @property
    def figures(self) -> dict[str, dict[str, Any]]:
        """All figures of all studies by name: study, grids, module, description (None: that of the module), complete options, and
        sources (the files read per run)."""
        found = {}
        for study, content in self.config["studies"].items():
            for name, figure in content["figures"].items():
                module = figure.get("module", name)
                options = options_given(module, figure, self.config.get("figures", {}))
                found[name] = {
                    "study": study,
                    "grids": figure["grids"],
                    "module": module,
                    "description": figure.get("description"),
                    "options": options,
                    "sources": sources(module),
                }
        return found


def configuration(*overlays: str | Path | dict[str, Any]) -> Configuration:
    """The project's configuration with overlays (files or dictionaries) merged into it, as --configfile does.

    Raises:
        ConfigurationError: the message names key, value and what is allowed.
    """
    layers = [*shipped(ROOT / "config"), *overlays]
    contents = (own if isinstance(own, dict) else read(Path(own)) for own in layers)
    written = [Path(os.path.relpath(own)) for own in layers if not isinstance(own, dict)]
    return Configuration(reduce(merged, contents, {}), written)
