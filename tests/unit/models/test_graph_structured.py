"""Networks whose computation follows a graph, and their encoder, compared with explicit implementations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.trained import problem_of, train_plain

from compositional.kinds.puzzle import PuzzleSplit
from compositional.layers.functional import gather
from compositional.layers.tap import dropout, silent_tap
from compositional.models import graph_structured, pixel_shuffle_transformer
from compositional.plugins import defaults
from compositional.synthesis import graphs, population
from compositional.synthesis.programs import Library, parse
from compositional.tasks import raven as raven_task
from compositional.training.problem import Problem, buffers, initial_weights


def graph_problem(model: str = "graph_structured", **changes) -> Problem:
    """Small networks on small puzzles, and three graphs: an edge, a path, and three nodes with a double edge."""
    members, about = raven_task.build(
        None, defaults("tasks.raven") | {"train_puzzles": 24, "validation_puzzles": 16, "image_size": 48}
    )
    programs = ["(push (add (connect identity)))", "(push (add (connect (next_port (push (add (connect identity)))))))"]
    programs += ["(push (add (connect (next_port (connect (next_port (add (connect identity))))))))"]
    library = Library()
    population_ = [
        population.describe(library, population.Individual(term, graphs.run(library, term))) for term in map(parse, programs)
    ]
    small = {"patch": 8, "width": 8, "residual_blocks": 1, "depth": 1, "heads": 2, "head_width": 4, "hidden_width": 8}
    small |= {"features": 32, "max_nodes": 6, "max_edges": 8} if model == "graph_structured" else {}
    base = {"batch_size": 4, "steps": 6, "record_every": 3, "curve_examples": 16, "clip": None, "learning_rate": 0.01}
    about |= {"task": "raven", "population": population_, "library": [], "explorations": []}
    splits = {
        name: PuzzleSplit(np.stack([np.asarray(image) for image in member["image"]]), member["label"], "cpu")
        for name, member in members.items()
    }
    return problem_of(model, about, splits, base, small | changes, task="raven")


def forward(problem: Problem, seed: int, weights: dict | None = None) -> torch.Tensor:
    """Scores (B, classes) of one network on the first puzzles."""
    weights = weights or initial_weights(problem, seed)
    tensors = {name: tensor[None] for name, tensor in (weights | buffers(problem, seed)).items()}
    batch = problem.splits["validation"].batch(torch.arange(5)[None])
    return problem.model.forward(problem.model_parameters, tensors, batch, silent_tap)[0]


def test_the_graph_network_equals_an_explicit_message_passing():
    problem = graph_problem()
    for seed in range(3):
        weights = initial_weights(problem, seed)
        graph = problem.about["population"][seed]["graph"]
        batch = problem.splits["validation"].batch(torch.arange(5)[None])
        packed_weights = {name: tensor[None] for name, tensor in weights.items()}
        features = pixel_shuffle_transformer.encode(problem.model_parameters, packed_weights, batch)[0]
        features = features @ weights["features.weight"] + weights["features.bias"]
        elements, width = len(graph["nodes"]) + len(graph["edges"]), features.shape[1]
        short = width // elements
        pieces = list(features.split([width - short * (elements - 1)] + [short] * (elements - 1), 1))
        rates = torch.tensor([10000 ** (-k / (width // 4 - 1)) for k in range(width // 4)])

        def element(ident, column, pieces=pieces, rates=rates, width=width):
            tiled = pieces[ident].repeat(1, width)[:, :width]
            return tiled + torch.cat(
                [(ident * rates).sin(), (ident * rates).cos(), (column * rates).sin(), (column * rates).cos()]
            )

        hidden = {node: element(node, 0) for node in graph["nodes"]}
        for layer in range(problem.model_parameters["layers"]):
            received = {node: value.clone() for node, value in hidden.items()}
            for ident, left, right, port in graph["edges"]:
                edge = element(ident, port + 1)
                received[left] = received[left] + (hidden[right] + edge).relu()
                received[right] = received[right] + (hidden[left] + edge).relu()
            hidden = {
                node: value @ weights[f"message{layer}.weight"] + weights[f"message{layer}.bias"]
                for node, value in received.items()
            }
        mean = torch.stack(list(hidden.values())).mean(0)
        logit = mean @ weights["output.weight"] + weights["output.bias"]
        scores = forward(problem, seed)
        torch.testing.assert_close(scores[:, 1:], logit, atol=1e-5, rtol=1e-4)
        assert not scores[:, 0].any()


def test_padding_changes_no_score_and_a_graph_that_is_too_large_is_refused():
    small, large = graph_problem(), graph_problem(max_nodes=10, max_edges=20)
    for seed in range(3):
        torch.testing.assert_close(forward(small, seed), forward(large, seed))
    with pytest.raises(ValueError, match="has 3 nodes and 2 edges; the model allows 2 and 8"):
        buffers(graph_problem(max_nodes=2), 1)
    with pytest.raises(ValueError, match="programs 0 to 2: there is none for seed 3"):
        buffers(small, 3)


def test_chunks_cover_the_feature_vector_and_the_first_takes_the_rest():
    rows = graph_structured.chunks(3, 8)
    assert rows.tolist() == [[0, 1, 2, 3, 0, 1, 2, 3], [4, 5, 4, 5, 4, 5, 4, 5], [6, 7, 6, 7, 6, 7, 6, 7]]


def test_gather_equals_indexing_and_has_the_right_gradient():
    index = torch.tensor([[0, 2, 2, 1], [1, 1, 0, 0]])
    users = torch.tensor([[[0, 4], [3, 4], [1, 2]], [[2, 3], [0, 1], [4, 4]]])
    values = torch.randn(2, 3, 3, dtype=torch.double, requires_grad=True)
    assert torch.equal(gather(values, index, users)[1], values[1][:, index[1]])
    assert torch.autograd.gradcheck(lambda tensor: gather(tensor, index, users), [values])


def test_the_encoder_equals_pytorch_modules():
    problem = graph_problem(model="pixel_shuffle_transformer")
    weights, options = initial_weights(problem, 0), problem.model_parameters
    batch = problem.splits["validation"].batch(torch.arange(5)[None])
    functional = torch.nn.functional
    x = functional.pixel_unshuffle(batch.images[0], 8)
    x = functional.conv2d(x, weights["patch.weight"].T[:, :, None, None], weights["patch.bias"])
    inner = functional.conv2d(x, weights["block0.convolution.weight"], padding=1)
    inner = functional.layer_norm(inner, (8, 6, 6), weights["block0.norm.weight"], weights["block0.norm.bias"])
    inner = functional.gelu(functional.conv2d(inner, weights["block0.first.weight"].T[:, :, None, None]))
    x = x + functional.conv2d(inner, weights["block0.second.weight"].T[:, :, None, None])
    row, column = np.divmod(np.arange(36), 6)
    rates = 10000.0 ** -np.arange(2)
    place = np.concatenate([of(axis[:, None] * rates) for axis in (column, row) for of in (np.sin, np.cos)], 1)
    x = x.flatten(2).transpose(1, 2) + torch.from_numpy(place).float()
    inner = functional.layer_norm(x, (8,), weights["layer0.attention_norm.weight"], weights["layer0.attention_norm.bias"])
    attention = torch.nn.MultiheadAttention(8, options["heads"], bias=False, batch_first=True)
    attention.load_state_dict(
        {"in_proj_weight": weights["layer0.attention_in.weight"].T, "out_proj.weight": weights["layer0.attention_out.weight"].T}
    )
    x = x + attention(inner, inner, inner)[0]
    inner = functional.layer_norm(x, (8,), weights["layer0.norm.weight"], weights["layer0.norm.bias"])
    inner = functional.gelu(inner @ weights["layer0.first.weight"] + weights["layer0.first.bias"])
    x = (x + inner @ weights["layer0.second.weight"] + weights["layer0.second.bias"]).mean(1)
    logit = x @ weights["output.weight"] + weights["output.bias"]
    torch.testing.assert_close(forward(problem, 0)[:, 1:], logit.detach(), atol=1e-5, rtol=1e-4)


def test_dropout_drops_its_share_scales_the_rest_and_does_not_act_in_evaluation():
    def tap(name, values, mask):
        return values

    values = torch.ones(3, 50000)
    assert dropout(tap, values, 0.3) is values
    tap.noise = lambda shape: torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))
    dropped = dropout(tap, values, 0.3)
    assert dropped.unique().tolist() == [0.0, pytest.approx(1 / 0.7)]
    assert (dropped == 0).float().mean().item() == pytest.approx(0.3, abs=0.005)
    plain, noisy = (train_plain(graph_problem(dropout=rate), [1])[0].tensors["weights"] for rate in (0.0, 0.3))
    assert not torch.equal(plain, noisy)
