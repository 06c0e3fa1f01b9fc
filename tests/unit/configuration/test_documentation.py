"""Every option and every key is documented, and the documented commands work."""

from __future__ import annotations

import re

import yaml
from support.configurations import ROOT

from compositional.configuration import documentation


def test_every_option_is_documented():
    documented = (ROOT / "config" / "README.md").read_text()
    written = (ROOT / "docs" / "options.md").read_text()
    assert written == documentation.page(), "docs/options.md is not what the modules declare (make docs)"
    assert "| `dropout` | number, at least 0, below 1 | `0.1` |" in written
    assert "| `stop_loss` | number or null, above 0 | `null` |" in written
    assert "| `against` | array of (string) or null | `null` |" in written
    assert "| `matricizations` | array of (array of (integer, at least 1)) | `[[1, 3]]` |" in written
    for key in yaml.safe_load((ROOT / "config" / "schema.yaml").read_text())["properties"]:
        assert f"`{key}`" in documented


def test_documented_commands_name_targets_before_configuration_files():
    """Snakemake takes every word after --configfile as another file, and every word after --config as another value."""
    calls = []
    for path in [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("config/*.*")]:
        calls += re.findall(r"--config(?:file)? ([^`#\n]*)", path.read_text())
    assert len(calls) > 5
    assert not [call for call in calls if "results/" in call]
