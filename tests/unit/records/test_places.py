"""Records are found wherever a project is."""

from __future__ import annotations

from pathlib import Path

import pytest

from compositional.records.places import record_beside


@pytest.mark.parametrize("above", ["", "/data/splits/project/"])
@pytest.mark.parametrize("name", ["digits", "digits/task.json", "digits/train/data.arrow"])
def test_the_record_of_a_split_is_beside_its_folder(above, name):
    assert record_beside(Path(f"{above}results/splits/{name}")) == Path(f"{above}results/splits/digits.provenance.json")
