"""The study of symbolically synthesized networks: its tasks in the configuration, and the loop as a workflow.

What it is made of is tested in tests/unit: datasets/test_raven.py, synthesis/, models/test_graph_structured.py.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from support.configurations import merged, read
from support.programs import FN_0
from support.project import Project

from compositional.configuration.configuration import Configuration, ConfigurationError
from compositional.figures.shared import synthesized as tables
from compositional.models import graph_structured, pixel_shuffle_transformer
from compositional.planning import targets
from compositional.runs import Run
from compositional.synthesis import graphs
from compositional.synthesis.programs import Library, parse
from compositional.tasks import raven_evolved

CONFIGS = ("config.yaml", "studies/synthesized_networks.yaml")


def configured(change: dict | None = None) -> Configuration:
    return Configuration(merged(read(*CONFIGS), change or {}))


def test_a_series_expands_to_its_tasks_and_a_generation_is_built_from_the_previous_one():
    configuration = configured()
    names = [name for name in configuration.config["tasks"] if name.startswith("raven_evolved")]
    assert names == [f"raven_evolved_loop{loop}_generation{g}" for loop in range(3) for g in (1, 2, 3)]
    assert configuration.built_from("raven") == ([], [])
    assert configuration.built_from(names[0]) == (["raven"], [])
    splits, runs = configuration.built_from(names[1])
    assert splits == ["raven", names[0]]
    assert runs == [Run(names[0], "graph_structured", "none", 0.0, seed) for seed in range(16)]
    assert configuration.parameters("tasks", names[4])["generation"] == 2
    # Options that the module declares after the generation stand behind it in names.
    wide = configured({"tasks": {"raven_evolved": {"series": {"generation": 2, "population": [8, 16]}}}})
    splits, runs = wide.built_from("raven_evolved_loop0_generation2_population8")
    assert (splits[1], len(runs)) == ("raven_evolved_loop0_generation1_population8", 8)
    sizes = configured({"pack_size": {"cpu": {"raven_evolved": 8, names[4]: 1}}}).config["pack_size"]
    assert (sizes[names[3]], sizes[names[4]]) == (8, 1)
    turned = read(*CONFIGS)
    turned["tasks"]["raven_evolved"]["series"] = {"generation": 3, "loop": [0, 1, 2]}
    assert list(Configuration(turned).config["tasks"]) == list(configuration.config["tasks"])
    last = f"results/runs/{names[2]}/graph_structured/none/lambda=0/seed=0/metrics.csv"
    wanted = targets.wanted_runs(configuration, [last])
    assert {run.task for run in wanted} == set(names[:3])
    assert len(wanted) == 16 + 16 + 1


# Widths: of the encoder, of its attention, of its hidden layers, and of the graph network; then blocks and transformer layers.
@pytest.mark.parametrize(
    ("overlay", "widths", "blocks", "layers"),
    [([], (96, 96, 192, 96), 2, 1), (["paper/synthesized_networks.yaml"], (256, 512, 512, 512), 3, 2)],
    ids=["default", "paper"],
)
def test_networks_and_training_have_the_sizes_of_the_original(overlay, widths, blocks, layers):
    configuration = Configuration(read(*CONFIGS, *overlay))
    w, a, h, g = widths
    encoder = 256 * w + w + blocks * (11 * w**2 + 2 * 64 * w) + layers * (4 * w + 4 * w * a + 2 * w * h + h + w)
    expected = {pixel_shuffle_transformer: encoder + w + 1, graph_structured: encoder + w * g + g + 3 * (g**2 + g) + g + 1}
    for module, size in expected.items():
        model = module.__name__.rsplit(".", 1)[1]
        options = configuration.parameters("models", model)
        weights = module.initialize(options, {"image_shape": [1, 128, 128], "classes": 2}, np.random.default_rng(0))
        assert sum(weight.numel() for weight in weights.values()) == size
    settings = configuration.settings("raven_evolved_loop0_generation1", "graph_structured")
    published = {"steps": 16 * 128 // 8, "batch_size": 8, "optimizer": "adam", "learning_rate": 0.001}
    assert settings | published == settings


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tasks": {"raven_evolved": {"puzzles": "ravne"}}}, "unknown task 'ravne'; did you mean 'raven'"),
        ({"tasks": {"raven_evolved": {"series": {"loop": [0], "generation": [2]}}}}, "generation1', which is not configured"),
        ({"tasks": {"raven": {"target": "constant_colour"}}}, "tasks.raven.target"),
        ({"tasks": {"raven": {"training": {"influence_examples": 16}}}}, "training.influence_examples"),
        ({"tasks": {"raven_evolved": {"series": {"loop": 0}}}}, "tasks.raven_evolved.series.loop"),
        ({"tasks": {"raven_evolved": {"max_nodes": 99}}}, "max_nodes"),
    ],
)
def test_wrong_options_stop_before_any_job(change, problem):
    def start():
        return targets.wanted_runs(configured(change), [])

    with pytest.raises(ConfigurationError, match=problem):
        start()


TINY = {
    "device": "cpu",
    "tasks": {
        "raven": {
            "train_puzzles": 32,
            "validation_puzzles": 40,
            "image_size": 48,
            "training": (short := {"steps": 4, "batch_size": 4, "record_every": 2, "curve_examples": 16}),
        },
        "raven_evolved": {
            "series": {"loop": [0], "generation": 2},
            "population": 3,
            "programs": 10000,
            "library": {"fn_0": FN_0},
            "training": short,
        },
    },
    "models": {
        "pixel_shuffle_transformer": (
            narrow := {"width": 8, "residual_blocks": 1, "depth": 1, "heads": 2, "head_width": 4, "hidden_width": 8}
        ),
        "graph_structured": narrow | {"features": 48},
    },
    "studies": {
        "synthesized_networks": {
            "figures": {
                name: {
                    "grids": [
                        *(
                            [{"task": "raven", "model": "pixel_shuffle_transformer", "regularizers": {}, "seeds": 4}]
                            if name in ("synthesized_ranks", "synthesized_correlation")
                            else []
                        ),
                        {"task": "raven_evolved", "model": "graph_structured", "regularizers": {}, "seeds": 3},
                    ]
                }
                for name in ("synthesized_ranks", "synthesized_correlation", "synthesized_library", "synthesized_programs")
            }
        }
    },
}
LIBRARY = "results/figures/synthesized_library.png"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    """The library's figure with everything that it needs, built from nothing."""
    project = Project(tmp_path_factory.mktemp("synthesized"))
    project.snakemake(LIBRARY, overlay=project.overlay(TINY))
    return project


@pytest.mark.workflow
def test_the_loop_builds_and_every_generation_is_a_set_of_ordinary_runs(built):
    results = built.folder / "results"
    for generation in (1, 2):
        task = f"raven_evolved_loop0_generation{generation}"
        about = json.loads((results / f"splits/{task}/task.json").read_text())
        library = Library(dict(about["library"]))
        for seed, member in enumerate(about["population"]):
            folder = results / f"runs/{task}/graph_structured/none/lambda=0/seed={seed}"
            assert json.loads((folder / "run.json").read_text())["status"] == "done"
            state = graphs.run(library, parse(member["program"]))
            assert [list(edge) for edge in state.edges] == member["graph"]["edges"]
    origins = [member["origin"] for member in about["population"]]
    metrics = [
        results / f"runs/raven_evolved_loop0_generation1/graph_structured/none/lambda=0/seed={seed}/metrics.csv"
        for seed in range(3)
    ]
    assert origins == [*raven_evolved.rank(metrics)[:2], None]
    assert len(list((results / "store/entries").glob("*/*.json"))) == 6
    found = tables.networks(pd.read_csv(results / "tables/synthesized_library.csv"))
    assert found.groupby("generation").size().to_dict() == {1: 3, 2: 3}
    assert found.origin[found.generation == 2].tolist() == [*origins[:2], -1]


@pytest.mark.workflow
def test_another_loop_reruns_nothing_and_a_changed_search_reruns_later_generations(built):
    assert "Nothing to be done" in built.snakemake(LIBRARY, overlay=built.overlay(TINY))
    more = json.loads(json.dumps(TINY))
    more["tasks"]["raven_evolved"]["series"]["loop"] = [0, 1]
    more["pack_size"] = {"cpu": {"default": 1}}  # so that every machine has as many jobs
    jobs = built.jobs(LIBRARY, overlay=built.overlay(more))
    assert jobs.pop("split") == 2
    new = {
        f"{stage}_raven_evolved_loop1_generation{g}__graph_structured__none": 3 for stage in ("train", "evaluate") for g in (1, 2)
    }
    assert jobs == new | {"aggregate": 1, "plot": 1}
    later = json.loads(json.dumps(TINY))
    later["tasks"]["raven_evolved"]["series"]["generation"] = 3
    jobs = built.jobs(LIBRARY, overlay=built.overlay(later))
    assert jobs.pop("split") == 1
    assert set(jobs) == {
        f"{stage}_raven_evolved_loop0_generation3__graph_structured__none" for stage in ("train", "evaluate")
    } | {
        "aggregate",
        "plot",
    }


@pytest.mark.workflow
def test_a_generation_built_again_has_the_same_bytes(built):
    overlay = built.overlay(TINY)
    task = "results/splits/raven_evolved_loop0_generation2/task.json"
    run = "results/runs/raven_evolved_loop0_generation2/graph_structured/none/lambda=0/seed=1/weights.safetensors"
    before = built.read(task, run)
    entries = [*(built.folder / "results/store/entries").rglob("*.json")]
    assert entries
    for path in entries:
        path.unlink()
    built.snakemake(LIBRARY, "--force", overlay=overlay)
    built.snakemake("results/splits/raven_evolved_loop0_generation2", "--force", overlay=overlay)
    (built.folder / run).unlink()
    built.snakemake(run, overlay=overlay)
    assert built.read(task, run) == before
