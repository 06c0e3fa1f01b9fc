"""A configuration to change, a package to write plug-ins into, and a device that is not the host."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
import torch
from support import elsewhere
from support.configurations import STUDIES, read
from support.trained import unguarded

from compositional import plugins, randomness
from compositional.configuration.schema import declared_by
from compositional.training.loop import train_runs
from compositional.training.pack import Pack
from compositional.training.problem import WIDTH
from compositional.training.state import fresh_state


@pytest.fixture
def config() -> dict:
    return read("config.yaml", *STUDIES)


@pytest.fixture
def package(monkeypatch, tmp_path):
    """A package with the contracts of this one and no module yet: writes one, given as "models.cnn"."""
    for contract in plugins.PACKAGE.glob("*/__init__.py"):
        (tmp_path / contract.parent.name).mkdir()
        shutil.copy(contract, tmp_path / contract.parent.name)
    monkeypatch.setattr(plugins, "PACKAGE", tmp_path)

    def clear() -> None:
        plugins.available.cache_clear()
        plugins.is_network.cache_clear()
        plugins.contract.cache_clear()
        plugins.declarations.cache_clear()
        declared_by.cache_clear()

    clear()

    def write(name: str, source: str, without: str = "") -> None:
        """With the least that its folder asks for above `source`, except one name."""
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
    """Packs of two runs on `elsewhere`, whose steps copy nothing; its generator of noise, which does not exist, is the host's.

    Puts a problem there, where `elsewhere.there` must hold.
    """
    draw = randomness.normal

    def normal(keys, step, size, out):
        draw(keys, step, size, out.here if out.device.type == elsewhere.DEVICE else out)
        return out

    def step(pack):
        with elsewhere.sealed():
            pack._step()

    monkeypatch.setattr(randomness, "normal", normal)
    monkeypatch.setattr(Pack, "_run_step", step)
    monkeypatch.setitem(WIDTH, elsewhere.DEVICE, 2)

    def moved(case):
        splits = {name: elsewhere.moved(split) for name, split in case.splits.items()}
        return replace(case, device=elsewhere.DEVICE, splits=splits)

    return moved


@pytest.fixture
def weights_of(device):
    """A run's weights after training of a problem; the second of its pack is filling, on the device."""

    def trained(case):
        state = fresh_state(case, 0, 0.1)
        with unguarded():
            train_runs(case, [state], lambda *_: [{}])
        return state.tensors["weights"]

    return trained


@pytest.fixture
def assert_stays(device, weights_of):
    """Asserts that a problem's steps stay on the device and compute what they do on the host."""

    def check(case, atol=1e-5):
        # Plain gradient descent: Adam would make steps of what is nothing but rounding, such as the gradient of a key's bias.
        few = {"steps": 2, "record_every": 2, "optimizer": "sgd", "learning_rate": 0.1}
        case = replace(case, settings=case.settings | few)
        before = fresh_state(case, 0, 0.1).tensors["weights"]
        here = weights_of(case)
        with elsewhere.there():
            found = weights_of(device(case))
        assert not torch.equal(here, before)
        # LSTMs and pooling have code of their own for the host: the same formulas, other last bits.
        torch.testing.assert_close(found, here, rtol=0, atol=atol)

    return check
