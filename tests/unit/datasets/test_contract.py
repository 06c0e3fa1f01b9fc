"""What every dataset must declare about its raw files."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from support import raw, small

from compositional.datasets import Dataset
from compositional.plugins import declarations, load

DATASETS = small.names("datasets")
DIGESTS = {"sha256": r"[0-9a-f]{64}", "git_blob": r"[0-9a-f]{40}"}


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_raw_file_has_a_checksum_and_a_source(dataset):
    small.entry("datasets", dataset)
    from_hub = load(Dataset, f"datasets.{dataset}").from_hub
    for name, file in declarations(f"datasets.{dataset}")["FILES"].items():
        assert {"mirror", "url"} <= file.keys() <= {"mirror", "url", "when", "bytes", *DIGESTS}, name
        assert file.get("bytes", 1) > 0, name
        (kind,) = file.keys() & DIGESTS.keys()
        # If no checksum is published, the library that provides the file checks it, and it must stay equal to the first download.
        assert file[kind] is None or re.fullmatch(DIGESTS[kind], file[kind]), name
        assert file[kind] is not None or from_hub, name
        assert re.fullmatch(rf"{dataset}(/[^/]+)+", file["mirror"]), name
        assert file["url"] is None or file["url"].startswith("https://"), name
        assert file["url"] is not None or from_hub, name


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_hub_is_asked_for_a_pinned_revision(dataset):
    """The data behind a name may change at any time."""
    source = Path(find_spec(f"compositional.datasets.{dataset}").origin).read_text()
    assert len(re.findall(r"load_dataset\(HUB, revision=REVISION, ", source)) == source.count("load_dataset(")
    if "load_dataset(" in source:
        assert re.fullmatch(r"[0-9a-f]{40}", import_module(f"compositional.datasets.{dataset}").REVISION)


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_license_states_whether_an_archive_may_contain_the_files(dataset):
    found = declarations(f"datasets.{dataset}")["LICENSE"]
    if found is not None:
        assert found.keys() == {"name", "url", "redistribution"}
        assert found["name"]
        assert found["url"].startswith("https://")
        assert isinstance(found["redistribution"], bool)


@pytest.mark.parametrize("dataset", DATASETS)
def test_raw_files_in_small_have_the_published_names(dataset, tmp_path):
    """tests/support/raw.py writes them for the tests of tasks."""
    if files := declarations(f"datasets.{dataset}")["FILES"]:
        raw.write(dataset, tmp_path)
        made = {path.name for path in tmp_path.iterdir()}
        assert made <= set(files)
        assert set(files) - made <= {"LICENSE"}
