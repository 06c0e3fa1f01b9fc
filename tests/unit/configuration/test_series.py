"""Series of tasks, and grids over several tasks and models, are expanded."""

from __future__ import annotations

from support.configurations import change, refusal

from compositional.configuration.configuration import Configuration

GRID = ["studies", "compositional_regularization", "figures", "ablation", "grids", 0]


def test_two_tasks_with_the_same_name_are_refused():
    tasks = {"sums": {"module": "addition", "series": {"shuffle": 2}}, "sums_shuffle1": {"module": "scan_jump"}}
    assert "'sums' and 'sums_shuffle1' both make a task 'sums_shuffle1'" in refusal(["tasks"], tasks)


def test_a_problem_of_a_series_is_told_once_and_names_the_entry_of_the_file():
    for entry, problem in (
        ({"module": "addition", "series": {"sets": 9}, "shufle": 1}, "tasks.sums: unknown key 'shufle'; did you mean 'shuffle'?"),
        ({"module": "addition", "series": {"setz": [1, 2]}}, "tasks.sums: unknown key 'setz'; did you mean 'sets'?"),
        ({"series": {"sets": 9}}, "tasks.sums: there is no task module 'sums'"),
    ):
        said = refusal(["tasks", "sums"], entry).splitlines()
        assert len(said) == 2
        assert said[1].startswith(f"  - {problem}")
    assert "needs `module: <name>`; this has ['sets']" in said[1]


def test_a_grid_of_several_tasks_and_models_becomes_one_grid_for_each_pair(config):
    change(config, GRID, {"task": ["scan_jump", "scan_length"], "model": "lstm_attention", "regularizers": {}, "seeds": 2})
    grids = Configuration(config).figures["ablation"]["grids"]
    expected = [
        {"task": task, "model": "lstm_attention", "regularizers": {}, "seeds": [0, 1]} for task in ("scan_jump", "scan_length")
    ]
    assert grids[:2] == expected
    assert "unknown task 'scan_lenght'; did you mean 'scan_length'" in refusal([*GRID, "task"], ["scan_jump", "scan_lenght"])


SUMS = {"module": "addition", "series": {"shuffle": [0, 1], "sets": [2, 5]}, "training": {"loss": "squared"}}


def test_a_grid_of_part_of_a_series_and_a_pack_size_of_the_series_apply_to_each_task(config):
    config["tasks"]["sums"] = SUMS
    config["pack_size"]["cpu"] |= {"sums": 7, "sums_shuffle1_sets5": 1}
    change(config, GRID, {"task": "sums_shuffle1", "model": "dense_network", "regularizers": {}, "seeds": 1})
    found = Configuration(config)
    assert [grid["task"] for grid in found.figures["ablation"]["grids"][:2]] == ["sums_shuffle1_sets2", "sums_shuffle1_sets5"]
    assert found.parameters("tasks", "sums_shuffle0_sets5") == {"trained_items": [4], "shuffle": 0, "sets": 5}
    sizes = {name: size for name, size in found.config["pack_size"].items() if name.startswith("sums_shuffle")}
    assert sizes == {"sums_shuffle0_sets2": 7, "sums_shuffle0_sets5": 7, "sums_shuffle1_sets2": 7, "sums_shuffle1_sets5": 1}


def test_an_option_of_a_figure_can_name_a_series(config):
    config["tasks"] |= {"sums": SUMS, "single": {"module": "addition", "series": {"sets": [2, 5]}}}
    figures = {
        "by_label": {"module": "composites", "options": {"columns": {"one": "sums_shuffle1", "other": {"9": "addition_both"}}}},
        "by_task": {"module": "locality", "options": {"tasks": "single"}},
    }
    grid = {"task": "addition_both", "model": "dense_network", "regularizers": {}, "seeds": 1}
    config["studies"]["more"] = {"figures": {name: figure | {"grids": [grid]} for name, figure in figures.items()}}
    found = Configuration(config).figures
    columns = {"one": {"2": "sums_shuffle1_sets2", "5": "sums_shuffle1_sets5"}, "other": {"9": "addition_both"}}
    assert found["by_label"]["options"]["columns"] == columns
    assert found["by_task"]["options"]["tasks"] == {"single_sets2": 2, "single_sets5": 5}
    figures["by_task"]["options"]["tasks"] = "singel"
    assert "more.figures.by_task.options.tasks: 'singel' is not of type 'object'" in refusal(
        ["studies", "more"], {"figures": {"by_task": figures["by_task"] | {"grids": [grid]}}}
    )
