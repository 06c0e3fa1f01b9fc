"""The configuration: checked as a whole before any job, then cut into the parts that each job depends on.

Its schema is config/schema.yaml plus what the modules declare (compositional.plugins): the options of a task, model or
regularizer are documented, defaulted and checked beside the code that uses them. Of this folder's modules each imports
only those before it: messages, schema, entries and series, compatibility, figures, and this one. Beside them are `files`, what is
refused before files are merged, and `documentation`, docs/options.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from compositional.configuration import compatibility
from compositional.configuration.entries import Entries
from compositional.configuration.figures import options_given, sources, wrong_figures
from compositional.configuration.messages import SECTIONS, ConfigurationError, options_for
from compositional.configuration.schema import check, declared_by
from compositional.configuration.series import written_out
from compositional.plugins import available
from compositional.runs import Run


def _plain(value: Any) -> Any:
    """The same in plain dictionaries and lists: Snakemake reads JSON files into ordered ones, which YAML can't write.

    Keys become text, as YAML reads a bare 5 as a number.
    """
    if isinstance(value, dict):
        return {str(key): _plain(own) for key, own in value.items()}
    return [_plain(own) for own in value] if isinstance(value, list) else value


@cache
def _schema(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


class Configuration(Entries):
    """A checked configuration."""

    def __init__(self, config: dict[str, Any], schema: Path) -> None:
        """Check `config` against the schema file and the modules.

        Raises:
            ConfigurationError: listing everything that is wrong.
        """
        self._given = _plain(config)
        problems = check(self._given, _schema(schema))
        if not problems:
            written, problems = written_out(self._given)
            super().__init__(written)
            problems += [line for section in SECTIONS for name in written[section] for line in self.wrong_entry(section, name)]
            known = ["default", *sorted({*self._given["tasks"], *self.names("tasks")})]
            problems += [
                f"pack_size.{device}: unknown task {name!r}{options_for(name, known)}"
                for device, sizes in self._given["pack_size"].items()
                for name in sizes
                if name not in known
            ]
        problems = problems or wrong_figures(self)
        if problems:
            raise ConfigurationError("\n".join(["The configuration is wrong:", *(f"  - {line}" for line in problems)]))

    def impossible(self, task: str, model: str, regularizer: str) -> list[str]:
        """Why this combination cannot be trained; empty if it can."""
        return compatibility.impossible(self, task, model, regularizer)

    def check_name(self, kind: str, name: str) -> None:
        """Refuse a figure or a task that is asked for and does not exist.

        Raises:
            ConfigurationError: naming the nearest match.
        """
        known = sorted(self.figures) if kind == "figure" else self.names("tasks")
        if name not in known:
            raise ConfigurationError(f"unknown {kind} {name!r}{options_for(name, known)}")

    def check_run(self, run: Run) -> None:
        """Refuse a run asked for by its path that the configuration cannot make.

        Raises:
            ConfigurationError: naming what is unknown, or why the combination is impossible.
        """
        sections = {"tasks": run.task, "models": run.model} | (
            {} if run.regularizer == "none" else {"regularizers": run.regularizer}
        )
        for section, name in sections.items():
            if name not in self.names(section):
                known = self.names(section)
                raise ConfigurationError(f"{run.path}: unknown {SECTIONS[section]} {name!r}{options_for(name, known)}")
        if (run.regularizer == "none") != (run.strength == 0):
            raise ConfigurationError(f"{run.path}: lambda is 0 if and only if the regularizer is 'none'; ask for none/lambda=0")
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
        """Refuse a download that is asked for and does not exist.

        Raises:
            ConfigurationError: naming the nearest match.
        """
        asked: list[tuple[str, Sequence[str], str]] = [(dataset, available("datasets"), "dataset")]
        if dataset in asked[0][1]:
            asked.append((name, sorted(declared_by(f"datasets.{dataset}")["FILES"]), f"file of {dataset}"))
        for wanted, known, what in asked:
            if wanted not in known:
                raise ConfigurationError(f"there is no {what} {wanted!r}{options_for(wanted, known)}")

    @property
    def archived(self) -> list[str]:
        """Names of the figures that the manifest, the archive and the report are made of."""
        chosen = self.config["archive"]["figures"]
        return sorted(self.figures) if chosen == "all" else list(chosen)

    @property
    def portable(self) -> dict[str, Any]:
        """The configuration as it was given, without what is true of this machine alone: laid over config.yaml it is the same."""
        return {**self._given, "mirror": None, "store": None}

    @property
    def figures(self) -> dict[str, dict[str, Any]]:
        """All figures of all studies by name: study, grids, module, options (complete), sources (files of every run)."""
        found = {}
        for study, content in self.config["studies"].items():
            for name, figure in content["figures"].items():
                module = figure.get("module", name)
                options = options_given(module, figure, self.config.get("figures", {}))
                found[name] = {
                    "study": study,
                    "grids": figure["grids"],
                    "module": module,
                    "options": options,
                    "sources": sources(module),
                }
        return found
