"""Series of tasks, and grids of several, are written out."""

from __future__ import annotations

from support.configurations import SCHEMA, change, refusal

from compositional.configuration.configuration import Configuration

GRID = ["studies", "compositional_regularization", "figures", "ablation", "grids", 0]


def test_two_tasks_of_one_name_are_refused():
    tasks = {"sums": {"module": "addition", "series": {"shuffle": 2}}, "sums_shuffle1": {"module": "scan_jump"}}
    assert "'sums' and 'sums_shuffle1' both make a task 'sums_shuffle1'" in refusal(["tasks"], tasks)


def test_a_grid_of_several_tasks_and_models_is_one_of_each(config):
    change(config, GRID, {"task": ["scan_jump", "scan_length"], "model": "lstm_attention", "regularizers": {}, "seeds": 2})
    grids = Configuration(config, SCHEMA).figures["ablation"]["grids"]
    expected = [
        {"task": task, "model": "lstm_attention", "regularizers": {}, "seeds": [0, 1]} for task in ("scan_jump", "scan_length")
    ]
    assert grids[:2] == expected
    assert "unknown task 'scan_lenght'; did you mean 'scan_length'" in refusal([*GRID, "task"], ["scan_jump", "scan_lenght"])
