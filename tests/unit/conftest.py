"""Fixtures: a configuration to change, a package for new plug-ins, and a device that is not the host."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
import torch
from support import elsewhere
from support.configurations import STUDIES, read
from support.trained import unguarded

from compositional import plugins
from compositional.configuration.schema import declared_by
from compositional.training import noise
from compositional.training.loop import train_runs
from compositional.training.pack import Pack
from compositional.training.problem import WIDTH
from compositional.training.state import fresh_state


@pytest.fixture
def config() -> dict:
    return read("config.yaml", *STUDIES)


@pytest.fixture
def package(monkeypatch, tmp_path):
    """A function that writes a module, named like "models.cnn", into a package with this one's contracts and no other modules."""
    for contract in plugins.PACKAGE.glob("*/__init__.py"):
        (tmp_path / contract.parent.name).mkdir()
        shutil.copy(contract, tmp_path / contract.parent.name)
    monkeypatch.setattr(plugins, "PACKAGE", tmp_path)

    def clear() -> None:
        plugins.available.cache_clear()
        plugins.defines.cache_clear()
        plugins.contract.cache_clear()
        plugins.declarations.cache_clear()
        declared_by.cache_clear()

    clear()

    def write(name: str, source: str, without: str = "") -> None:
        """Write a module: everything that its folder's contract requires, except the name `without`, and then `source`."""
        contract = plugins.contract(name.partition(".")[0])
        values = {"PARAMETERS": "{}", "FILES": "{}"}
        needed = [one for one in contract.names if one in contract.required and one != without] if contract else []
        lines = [f"{one} = {values.get(one, ())}" if one.isupper() else f"def {one}(*arguments): ..." for one in needed]
        plugins.module_path(name).write_text("\n".join([*lines, source]))
        clear()

    yield write
    clear()


@pytest.fixture
def device(monkeypatch):
    """A function that moves a problem to the device `elsewhere`; it must be called within `elsewhere.there`.

    Packs have two runs, and steps may copy nothing between the device and the host. The device has no random numbers of its own,
    so noise comes from the host's generator.
    """
    fill = noise.fill

    def filled(numbers, seed):
        fill(numbers.here if numbers.device.type == elsewhere.DEVICE else numbers, seed)

    def step(pack):
        with elsewhere.sealed():
            pack._step()

    monkeypatch.setattr(noise, "fill", filled)
    monkeypatch.setattr(Pack, "_run_step", step)
    monkeypatch.setitem(WIDTH, elsewhere.DEVICE, 2)

    def moved(case):
        splits = {name: elsewhere.moved(split) for name, split in case.splits.items()}
        return replace(case, device=elsewhere.DEVICE, splits=splits)

    return moved


@pytest.fixture
def weights_of(device):
    """A function that trains a problem and returns a run's weights; on the device, the second run of its pack is padding."""

    def trained(case):
        state = fresh_state(case, 0, 0.1)
        with unguarded():
            train_runs(case, [state], lambda *_: [{}])
        return state.tensors["weights"]

    return trained


@pytest.fixture
def assert_stays(device, weights_of):
    """A function that asserts that a problem's steps stay on the device and compute the same as on the host."""

    def check(case, atol=1e-5):
        # Plain gradient descent, because Adam would turn pure rounding errors, such as the gradient of a key's bias, into steps.
        few = {"steps": 2, "record_every": 2, "optimizer": "sgd", "learning_rate": 0.1}
        case = replace(case, settings=case.settings | few)
        before = fresh_state(case, 0, 0.1).tensors["weights"]
        here = weights_of(case)
        with elsewhere.there():
            found = weights_of(device(case))
        assert not torch.equal(here, before)
        # LSTMs and pooling have separate code for the host: the same formulas, but different last bits.
        torch.testing.assert_close(found, here, rtol=0, atol=atol)

    return check
