"""A configuration to change, and a package to write plug-ins into."""

from __future__ import annotations

import pytest
from support.configurations import STUDIES, read

from compositional import plugins
from compositional.configuration.schema import declared_by


@pytest.fixture
def config() -> dict:
    return read("config.yaml", *STUDIES)


@pytest.fixture
def package(monkeypatch, tmp_path):
    """A package with no module yet: writes one, given as "models.cnn"."""
    monkeypatch.setattr(plugins, "PACKAGE", tmp_path)

    def clear() -> None:
        plugins.available.cache_clear()
        plugins.declarations.cache_clear()
        declared_by.cache_clear()

    clear()

    def write(name: str, source: str) -> None:
        path = plugins.module_path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        clear()

    yield write
    clear()
