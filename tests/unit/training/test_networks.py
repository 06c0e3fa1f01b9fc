"""A model that is an ordinary torch.nn.Module has what other models have: its own seed, independence, checkpoints, decoding."""

from __future__ import annotations

import random
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support import small
from support.trained import same, train, untrained, weights_of
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from compositional.evaluation import activations, decoding, metrics
from compositional.kinds import combination, composite, point, puzzle, tensor
from compositional.language.vocabulary import PAD
from compositional.layers.tap import silent_tap
from compositional.training import model_guards
from compositional.training.loop import train_runs
from compositional.training.pack import Pack
from compositional.training.plugin_errors import PluginError
from compositional.training.problem import buffers, initial_weights, weight_layout
from compositional.training.state import fresh_state

T5 = pytest.param("t5", marks=pytest.mark.skipif(not find_spec("transformers"), reason="needs pip install -r envs/optional.txt"))


def own(case, network, representations=None):
    """The same problem with another network."""
    return replace(case, model=replace(case.model, Network=network, REPRESENTATIONS=representations or {}))


def test_the_global_random_numbers_of_torch_are_not_changed(problem):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    train(problem("gru_attention", steps=2), [(0, 0.0)])
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("model", ["gru_attention", "transformer_torch"])
def test_a_network_trains_like_in_a_plain_loop_in_pytorch(problem, model):
    """The loop has the same network and batches. Adam is not used, because it would turn rounding errors into steps."""
    rates = {"optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.9, "decay": 0.5}
    case = problem(model, steps=4, record_every=4, clip=0.5, **rates)
    case = replace(case, model_parameters=case.model_parameters | {"dropout": 0.0})
    (state,) = train(case, [(3, 0.0)])
    network = case.model.Network(case.model_parameters, case.about)
    network.load_state_dict(initial_weights(case, 3))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    split = case.splits["train"]
    pack = Pack(case, [fresh_state(case, 3, 0.0)], None)
    for step in range(4):
        (rows,) = split.draw(pack.key(state, "batches"), range(step, step + 1), 64)
        lengths, targets = split.target_lengths[rows], split.targets[rows]
        steps = int(lengths.max())
        given = SimpleNamespace(
            inputs=split.inputs[rows],
            input_lengths=split.input_lengths[rows],
            input_mask=torch.arange(split.inputs.shape[1]) < split.input_lengths[rows, None],
            previous=torch.cat([torch.ones(64, 1, dtype=torch.int64), targets[:, : steps - 1]], 1),
        )
        logits = network(given)
        loss = cross_entropy(logits, targets[:, :steps], PAD) / 64
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.5)
        optimizer.param_groups[0]["lr"] = 0.1 * 0.5 ** (step / 100)
        optimizer.step()
    ours = weights_of(case, [state])
    for name, weight in network.named_parameters():
        torch.testing.assert_close(ours[name][0], weight.detach(), atol=1e-5, rtol=1e-4)


def test_a_network_with_batch_normalization_equals_its_packed_twin(problem):
    """This holds in training, for the statistics, and in evaluation."""
    packed = problem("batchnorm_cnn")
    single = replace(problem("batchnorm_cnn_torch"), model_parameters=packed.model_parameters)
    weights = initial_weights(packed, 0)
    renamed = {}
    for index in range(len(packed.model_parameters["channels"])):
        layer = f"convolution{index}"
        renamed |= {f"convolutions.{index}.{kind}": weights[f"{layer}.{kind}"] for kind in ("weight", "bias")}
        renamed |= {f"norms.{index}.weight": weights[f"{layer}.scale"], f"norms.{index}.bias": weights[f"{layer}.shift"]}
    for index in range(len(packed.model_parameters["dense_widths"])):
        renamed |= {
            f"dense.{index}.weight": weights[f"dense{index}.weight"].T,
            f"dense.{index}.bias": weights[f"dense{index}.bias"],
        }
    renamed |= {"output.weight": weights["output.weight"].T, "output.bias": weights["output.bias"]}
    assert {name: value.shape for name, value in renamed.items()} == {
        name: value.shape for name, value in initial_weights(single, 0).items()
    }
    pairs = [(case, {name: value[None] for name, value in own.items()}) for case, own in ((packed, weights), (single, renamed))]
    batch = packed.splits["train"].batch(torch.arange(64)[None])
    ours, theirs = (case.model.forward(case.model_parameters, given, batch, silent_tap) for case, given in pairs)
    torch.testing.assert_close(theirs, ours)
    calibrated = [metrics.calibrated(*pair) for pair in pairs]
    for kind, theirs_called in (("mean", "running_mean"), ("variance", "running_var")):
        torch.testing.assert_close(calibrated[1][f"norms.0.{theirs_called}"], calibrated[0][f"convolution0.{kind}"])
    (ours,), (theirs,) = (metrics.measure(*pair) for pair in pairs)
    assert theirs == pytest.approx(ours, rel=1e-5)


class Reader(nn.Module):
    """`lstm_regressor` made of standard modules. These have two biases per gate; one of them is zero here."""

    def __init__(self, parameters, task):
        super().__init__()
        width = parameters["width"]
        self.embedding, self.cell = nn.Embedding(len(task["symbols"]), width), nn.LSTM(width, width, batch_first=True)
        nn.init.zeros_(self.cell.bias_hh_l0.requires_grad_(False))
        self.states, self.output = nn.Identity(), nn.Linear(width, 1)

    def forward(self, batch):
        states = self.states(self.cell(self.embedding(batch.inputs))[0])
        return self.output(states[torch.arange(len(states)), batch.input_lengths - 1])


@pytest.mark.parametrize("regularizer", ["smoothness", "recombination"])
def test_a_network_for_sequence_regression_equals_its_packed_twin(regularizer):
    """It starts and ends with the same weights, and its runs do not depend on their neighbors."""
    packed = small.problem("lstm_regressor", regularizer)
    rates = {"steps": 6, "optimizer": "sgd", "learning_rate": 0.02, "momentum": 0.9, "clip": None}
    packed = replace(packed, settings=packed.settings | rates)
    single = own(packed, Reader, {"word_embedding": "embedding", "encoder_states": "states"})

    def renamed(flat):
        weights = {name: values[0] for name, values in weight_layout(packed).views(flat[None]).items()}
        cell = {}
        for name, theirs in (("input", "weight_ih_l0"), ("recurrent", "weight_hh_l0"), ("bias", "bias_ih_l0")):
            into, keep, out, candidate = weights[f"cell.{name}"].transpose(0, -1).chunk(4)
            cell[f"cell.{theirs}"] = torch.cat([into, keep, candidate, out])
        output = {"output.weight": weights["output.weight"].T, "output.bias": weights["output.bias"]}
        return weight_layout(single).flatten({"embedding.weight": weights["embedding"]} | cell | output)

    ours, theirs, other = fresh_state(packed, 0, 0.1), fresh_state(single, 0, 0.1), fresh_state(single, 1, 0.1)
    begin = theirs.tensors["weights"] = renamed(ours.tensors["weights"])
    train_runs(packed, [ours], metrics.measure)
    train_runs(single, [theirs, other], metrics.measure)
    torch.testing.assert_close(theirs.tensors["weights"], renamed(ours.tensors["weights"]), atol=1e-5, rtol=1e-4)
    assert (theirs.tensors["weights"] - begin).abs().max() > 0.01
    assert same(other, train(single, [(1, 0.1)])[0])
    for left, right in zip(theirs.history, ours.history, strict=True):
        assert left[:3] == right[:3]
        assert left[3] == pytest.approx(right[3], rel=1e-3)


@pytest.mark.parametrize("model", ["gru_attention", "transformer_torch", T5])
def test_greedy_decoding_is_right_whenever_teacher_forcing_is(problem, model):
    case = problem(model, steps=30, record_every=30, learning_rate=0.01)
    (state,) = train(case, [(0, 0.0)])
    weights = weights_of(case, [state])
    ((_, batch),) = case.splits["test"].evaluation_batches(1, 32, 32)
    correct = batch.correct(case.model.forward(case.model_parameters, weights, batch, silent_tap))[0]
    (written,) = decoding.predictions(case, weights, "test", 32)
    assert [target == prediction for _, target, prediction in written] == correct.tolist()
    assert all(prediction for *_, prediction in written)


@pytest.mark.parametrize(("model", "expected"), [("gru_attention", True), ("t5", True), ("lstm_attention", False)])
def test_only_fingerprints_of_networks_contain_the_code_that_wraps_networks(model, expected):
    assert ("training.networks" in small.configuration().modules(("scan_jump", model, "none"))) == expected


def test_a_networks_representations_are_outputs_of_its_submodules(problem):
    case = problem("gru_attention")
    weights = untrained(case)
    batch = case.splits["train"].evaluation_batches(1, 16, 16)[0][1]
    _, found = activations.shown(case, weights, batch)
    rows, positions = batch.inputs.shape[1:]
    shapes = {name: (tuple(values.shape), tuple(mask.shape)) for name, (values, mask) in found.items()}
    width = 2 * case.model_parameters["encoder_width"]
    expected = (1, rows, positions)
    assert shapes == {
        "word_embedding": ((*expected, case.model_parameters["embedding_width"]), expected),
        "encoder_states": ((*expected, width), expected),
    }


def cross_entropy(logits, targets, padding):
    """Cross entropy, summed over all positions (B, T) that are not padding."""
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=padding, reduction="sum")


class Linear(nn.Module):
    """A linear network for any input, with everything that could be handled wrongly or forgotten."""

    def __init__(self, parameters, task):
        super().__init__()
        self.output = nn.Linear(128, 10)
        self.tied = self.output
        self.unused = nn.Linear(2, 2)
        self.frozen = nn.Parameter(torch.randn(10), requires_grad=False)
        self.register_buffer("random", torch.rand(10))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, batch):
        return self.output(batch.flatten(1)) * self.random + self.frozen


def test_frozen_parameters_and_buffers_belong_to_the_run_and_do_not_change(problem):
    case = own(problem("cnn", steps=3, weight_decay=0.1), Linear)
    assert set(initial_weights(case, 0)) == {"output.weight", "output.bias", "unused.weight", "unused.bias"}
    first, second = buffers(case, 0), buffers(case, 1)
    assert set(first) == {"frozen", "random", "calls"}
    assert not torch.equal(first["random"], second["random"])
    together = train(case, [(0, 0.0), (1, 0.0)])
    assert same(train(case, [(1, 0.0)])[0], together[1])
    assert torch.equal(buffers(case, 0)["frozen"], first["frozen"])


def test_a_network_may_change_what_it_is_given(problem):
    class Emptying(Linear):
        def __init__(self, parameters, task):
            super().__init__(parameters, task)
            parameters.clear()
            task.clear()

    ours, theirs = (train(own(problem("cnn", steps=3), network), [(0, 0.0)])[0] for network in (Emptying, Linear))
    assert same(ours, theirs)


def counts(self, batch):
    self.calls += 1
    return self.output(batch.flatten(1)) * (1 + 0.1 * self.calls)


def numpy_noise(self, batch):
    return self.output(batch.flatten(1)) + torch.from_numpy(np.random.standard_normal((len(batch), 10)).astype(np.float32))


def rarely_skips(self, batch):
    hidden = batch.flatten(1)
    return self.output(0 * hidden if self.training and random.random() < 1e-9 else hidden)


def counts_in_python(self, batch):
    self.passes = getattr(self, "passes", 0) + 1
    return self.output(batch.flatten(1))


def counts_in_a_tensor(self, batch):
    self.steps = self.__dict__.setdefault("steps", torch.zeros(())) + 1
    return self.output(batch.flatten(1)) * (2 if self.steps > 1000 else 1)


def counts_in_an_array(self, batch):
    self.__dict__.setdefault("steps", np.zeros(1))[0] += 1
    return self.output(batch.flatten(1)) * (2 if self.steps > 1000 else 1)


def counts_with_numpy(self, batch):
    self.steps = np.int64(self.__dict__.get("steps", 0)) + 1
    return self.output(batch.flatten(1)) * (2 if self.steps > 1000 else 1)


def clamps(self, batch):
    with torch.no_grad():
        self.output.weight.clamp_(-0.01, 0.01)
    return self.output(batch.flatten(1))


def shrinks_in_evaluation(self, batch):
    if not self.training:
        self.output.weight.data.mul_(0.99)
    return self.output(batch.flatten(1))


def mixes_examples(self, batch):
    scores = self.output(batch.flatten(1))
    return scores - scores.mean(0)


OUTSIDE = nn.Linear(10, 10)


def uses_a_layer_of_the_file(self, batch):
    return OUTSIDE(self.output(batch.flatten(1)))


def makes_a_layer(self, batch):
    return nn.Linear(10, 10)(self.output(batch.flatten(1)))


def drops_in_evaluation(self, batch):
    return self.output(nn.functional.dropout(batch.flatten(1), 0.5))


def drops_weights_in_evaluation(self, batch):
    return nn.functional.linear(batch.flatten(1), nn.functional.dropout(self.output.weight, 0.5))


def skips_in_evaluation(self, batch):
    scores = self.output(batch.flatten(1))
    return scores if torch.rand(()) < 0.5 else 2 * scores


def remembers(self, batch):
    self.__dict__.setdefault("seen", []).append(batch.mean())
    return self.output(batch.flatten(1)) * (2 if len(self.seen) > 1000 else 1)


def starts_later(self, batch):
    places = self.__dict__.setdefault("places", count())
    return self.output(batch.flatten(1)) * (2 if next(places) > 1000 else 1)


def draws_from_its_own(make, draw):
    """The forward pass of a network that makes a generator once and rarely uses what it draws."""

    def forward(self, batch):
        source = self.__dict__.setdefault("source", make())
        return self.output(batch.flatten(1)) * (2 if draw(source) < 1e-9 else 1)

    return forward


WARM = {"steps": 0}


def warms_up(self, batch):
    WARM["steps"] += 1
    return self.output(batch.flatten(1)) * (2 if WARM["steps"] > 1000 else 1)


@pytest.mark.parametrize(
    ("forward", "complaint"),
    [
        (drops_weights_in_evaluation, "in evaluation, its output changes with random numbers"),
        (skips_in_evaluation, "in evaluation, its output changes with random numbers"),
        (remembers, "it changes the length of seen. A resumed run"),
        (starts_later, "it changes places. A resumed run"),
        (draws_from_its_own(lambda: random.Random(0), lambda source: source.random()), "it changes source. A resumed run"),
        (
            draws_from_its_own(lambda: np.random.default_rng(0), lambda source: source.random()),
            "it changes source. A resumed run",
        ),
        (
            draws_from_its_own(torch.Generator, lambda source: torch.rand((), generator=source)),
            "it changes source. A resumed run",
        ),
        (warms_up, r"it changes WARM\['steps'\]. A resumed run"),
        (counts, "it changes calls of its run"),
        (lambda self, batch: self.output(batch.flatten(1)).bfloat16(), "must be of dtype torch.float32, it is of torch.bfloat16"),
        (counts_in_python, "it changes passes. A resumed run"),
        (counts_in_a_tensor, "it changes steps. A resumed run"),
        (counts_in_an_array, "it changes steps. A resumed run"),
        (counts_with_numpy, "it changes steps. A resumed run"),
        (clamps, "it changes output.weight of its run. Only the optimizer"),
        (shrinks_in_evaluation, "it changes output.weight of its run. Only the optimizer"),
        (mixes_examples, "an example's loss changes with the others of its batch"),
        (drops_in_evaluation, "an example's loss changes with the others of its batch"),
        (uses_a_layer_of_the_file, "that do not belong to the run"),
        (makes_a_layer, "that do not belong to the run"),
        (numpy_noise, "it draws random numbers from a global generator of Python, NumPy or PyTorch"),
        (rarely_skips, "it draws random numbers from a global generator of Python, NumPy or PyTorch"),
        (
            lambda self, batch: self.output(batch.flatten(1))[:, 1:],
            # It knows no run axis.
            r"its result must be of shape \(\d+, 10\), it is of shape \(\d+, 9\). Usual cause: .* another number of outputs",
        ),
        (lambda self, batch: self.output(batch.flatten(1)).log(), "not finite"),
    ],
)
def test_a_network_whose_outputs_depend_on_more_than_its_weights_is_refused(problem, forward, complaint):
    network = type("Network", (Linear,), {"forward": forward})
    with pytest.raises(PluginError, match=f"{__file__}, line {forward.__code__.co_firstlineno}, .*{complaint}"):
        train(own(problem("cnn"), network), [(0, 0.0)])


def test_a_weight_without_axes_is_trained(problem):
    """As a temperature, or the logit scale of CLIP."""

    class Scaled(Linear):
        def __init__(self, parameters, task):
            super().__init__(parameters, task)
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, batch):
            return super().forward(batch) * self.scale

    case = own(problem("cnn", steps=3), Scaled)
    (state,) = train(case, [(0, 0.0)])
    weights = weight_layout(case).views(state.tensors["weights"][None])
    assert weights["scale"].shape == (1,)
    assert weights["scale"].item() != 2


class Plain(nn.Module):
    """A network for images. PREPARE is called at the end of its initialization."""

    def __init__(self, parameters, task):
        super().__init__()
        self.hidden, self.normed = nn.Linear(int(np.prod(task["image_shape"])), 16), nn.BatchNorm1d(16)
        self.relu, self.output = nn.ReLU(inplace=True), nn.Linear(16, task["classes"])
        self.prepare()

    def prepare(self):
        """Nothing more."""

    def forward(self, images):
        return self.output(self.relu(self.normed(self.hidden(images.flatten(1)))))


def random_projection(self):
    self.projection = torch.from_numpy(np.random.standard_normal((16, 16)).astype(np.float32))


def numpy_weights(self):
    self.output.weight.data = torch.from_numpy(np.random.standard_normal(self.output.weight.shape).astype(np.float32))


def projection_of_the_seed(self):
    self.register_buffer("projection", torch.randn(16, 16), persistent=False)


def layers_in_a_list(self):
    self.alias = [self.hidden]  # is registered under another name
    self.blocks = [nn.Linear(16, 16), nn.Linear(16, 16)]


def number_of_the_seed(self):
    self.scales = {"first": torch.randn(()).item()}


def takes_more_threads(self):
    torch.set_num_threads(3)


def stays_in_evaluation(self):
    self.train = lambda mode=True: (nn.Module.train(self, mode), self.normed.eval())[0]


def hooks_a_gradient(self):
    self.output.weight.register_hook(lambda gradient: gradient * 0)


def is_compiled(self):
    self.output = torch.compile(self.output)


def compiles_itself(self):
    self.compile()


def is_scripted(self):
    self.output = torch.jit.script(self.output)


def assigns(self, images):
    self.scale = self.scale * 0.9
    return Plain.forward(self, images) * self.scale


def freezes(self, images):
    self.normed.eval()
    return Plain.forward(self, images)


@pytest.mark.parametrize(
    ("functions", "complaint"),
    [
        ({"prepare": random_projection}, "projection differs when it is built twice with one seed"),
        ({"prepare": numpy_weights}, "output.weight differs when it is built twice with one seed"),
        ({"prepare": projection_of_the_seed}, "projection depends on the seed but is not in its state dictionary"),
        ({"prepare": layers_in_a_list}, r"blocks\[0\], blocks\[1\] is in a Python container, so it is neither trained nor kept"),
        ({"prepare": number_of_the_seed}, r"scales\['first'\] depends on the seed but is not in its state dictionary"),
        ({"prepare": lambda self: torch.manual_seed(0)}, "it calls torch.manual_seed"),
        ({"prepare": lambda self: self.double()}, "hidden.weight has dtype torch.float64, must be torch.float32"),
        ({"prepare": lambda self: self.requires_grad_(False)}, "it has no parameter that can be trained"),
        (
            {"prepare": lambda self: setattr(self, "output", nn.LazyLinear(10))},
            "the shape of output.weight, output.bias is unknown",
        ),
        ({"prepare": hooks_a_gradient}, "output.weight has a hook on its gradient, which would not be called"),
        ({"prepare": is_compiled}, "output is made by torch.compile or torch.jit"),
        ({"prepare": compiles_itself}, "it is made by torch.compile or torch.jit"),
        ({"prepare": is_scripted}, "output is made by torch.compile or torch.jit"),
        (
            {"prepare": takes_more_threads},
            r"changes torch\.get_num_threads\(\) from 1 to 3\. They are those of the whole process",
        ),
        ({"prepare": stays_in_evaluation}, r"its train\(\) leaves normed in evaluation"),
        (
            {"prepare": lambda self: self.register_buffer("scale", torch.ones(1)), "forward": assigns},
            "forward assigns scale, which no training step keeps",
        ),
        ({"forward": freezes}, r"forward calls train\(\) or eval\(\) on batch normalization"),
        ({"forward": lambda self, images: (Plain.forward(self, images), None)}, "it returns a tuple"),
        ({"forward": lambda self, images: {"logits": Plain.forward(self, images)}}, "it returns a dict"),
        ({"forward": lambda self, images: Plain.forward(self, images).detach()}, "its result has no gradient"),
        ({"forward": lambda self, images: Plain.forward(self, images.sub_(0.5))}, "it changes images of its batch"),
    ],
)
def test_an_ordinary_module_that_would_not_train_as_in_pytorch_is_refused(problem, functions, complaint):
    network = type("Network", (Plain,), functions)
    with pytest.raises(ValueError, match=f"{__file__}.*{complaint}"):
        train(own(problem("cnn"), network), [(0, 0.0)])


def test_representations_that_no_submodule_has_are_refused(problem):
    with pytest.raises(ValueError, match=r"there is no submodule 'hiden'\. Allowed: hidden, normed, relu, output"):
        own(problem("cnn"), Plain, {"penultimate": "hiden"})


def test_a_representation_is_what_its_submodule_gives_even_if_it_is_changed_in_place_afterwards(problem):
    case, shown = own(problem("cnn"), Plain, {"penultimate": "normed"}), []
    weights = untrained(case)
    batch = case.splits["train"].batch(torch.arange(64)[None])

    def tap(name, values, mask):
        shown.append(values)
        return values

    case.model.forward(case.model_parameters, weights, batch, tap)
    assert (shown[0] < 0).any()


@pytest.mark.parametrize(("padding", "refused"), [((2, 0), False), ((1, 1), True)], ids=["causal", "later symbols"])
def test_a_decoder_that_sees_later_target_symbols_is_refused(problem, padding, refused):
    class Network(nn.Module):
        def __init__(self, parameters, task):
            super().__init__()
            symbols = len(task["target_words"])
            self.symbols, self.mix, self.pad = nn.Embedding(symbols, 32), nn.Conv1d(32, symbols, 3), nn.ConstantPad1d(padding, 0)

        def forward(self, batch):
            return self.mix(self.pad(self.symbols(batch.previous).transpose(1, 2))).transpose(1, 2)

    case = own(problem("lstm_attention", steps=1), Network)
    with pytest.raises(PluginError, match="its output at a step changes with later target symbols") if refused else nullcontext():
        train(case, [(0, 0.0)])


def test_a_run_that_diverges_is_not_taken_for_one_that_sees_later_symbols(problem):
    case = problem("lstm_attention")
    weights = {name: torch.full_like(value, torch.nan) for name, value in untrained(case).items()}
    model_guards.check_order(case, weights)


@pytest.mark.parametrize("packs", [False, True])
def test_a_network_that_reads_padding_is_refused(problem, packs):
    """The same sentence would have another output in a member with longer sentences."""

    class Network(nn.Module):
        def __init__(self, parameters, task):
            super().__init__()
            self.words, self.encoder = nn.Embedding(len(task["source_words"]), 16), nn.GRU(16, 16, batch_first=True)
            self.symbols, self.output = nn.Embedding(len(task["target_words"]), 16), nn.Linear(16, len(task["target_words"]))

        def forward(self, batch):
            words = self.words(batch.inputs)
            if packs:
                words = pack_padded_sequence(words, batch.input_lengths, batch_first=True, enforce_sorted=False)
            _, last = self.encoder(words)
            return self.output(self.symbols(batch.previous) + last[0].unsqueeze(1))

    case = own(problem("lstm_attention", steps=1), Network)
    with nullcontext() if packs else pytest.raises(PluginError, match="its output changes if an input is padded further"):
        train(case, [(0, 0.0)])


def test_a_network_of_expressions_that_reads_padding_is_refused():
    class Last(Reader):
        def forward(self, batch):
            return self.output(self.states(self.cell(self.embedding(batch.inputs))[0])[:, -1])

    case = own(small.problem("lstm_regressor", None), Last, {"word_embedding": "embedding", "encoder_states": "states"})
    with pytest.raises(PluginError, match="its output changes if an input is padded further"):
        train(case, [(0, 0.0)])


def test_outputs_of_another_length_are_refused(problem):
    class Network(nn.Module):
        def __init__(self, parameters, task):
            super().__init__()
            self.symbols = nn.Embedding(len(task["target_words"]), len(task["target_words"]))

        def forward(self, batch):
            return self.symbols(batch.previous[:, 1:])

    with pytest.raises(ValueError, match=r"outputs of a Network must be \(B, T, symbols\), B, T = "):
        train(own(problem("lstm_attention"), Network), [(0, 0.0)])


def test_a_submodule_whose_output_is_not_one_state_per_example_is_named(problem):
    class Network(nn.Module):
        def __init__(self, parameters, task):
            super().__init__()
            self.words, self.encoder = nn.Embedding(len(task["source_words"]), 8), nn.LSTM(8, 8)

        def forward(self, batch):
            self.encoder(self.words(batch.inputs).transpose(0, 1))

    with pytest.raises(ValueError, match=r"'encoder_states': submodule 'encoder' must give .*it gives .*batch_first=True"):
        train(own(problem("lstm_attention"), Network, {"encoder_states": "encoder"}), [(0, 0.0)])


def test_a_representation_that_a_network_never_shows_is_refused(problem):
    """Plain runs, too: figures read representations."""

    class Network(nn.Module):
        def __init__(self, parameters, task):
            super().__init__()
            self.pixels, self.encoder = nn.Linear(int(np.prod(task["image_shape"])), task["classes"]), nn.Linear(2, 2)

        def forward(self, images):
            return self.pixels(images.flatten(1))

    with pytest.raises(ValueError, match="it does not show features of its REPRESENTATIONS"):
        train(own(problem("cnn"), Network, {"features": "encoder"}), [(0, 0.0)])


class Flat(nn.Module):
    """A network with one output per example, for any kind's input."""

    def __init__(self, parameters, task):
        super().__init__()
        self.output = nn.Linear(parameters["inputs"], task["classes"])

    def forward(self, batch):
        return self.output(batch.flatten(1))


class Entries(nn.Module):
    """A matrix as a product of two matrices."""

    def __init__(self, parameters, task):
        super().__init__()
        self.left, self.right = (nn.Parameter(0.5 * torch.randn(size, 2)) for size in task["shape"])

    def forward(self, batch):
        assert batch is None
        return (self.left @ self.right.T).flatten()


def splits_of(kind):
    """A small split of a kind, how many numbers an example has, and the content of task.json."""
    source = np.random.default_rng(0)
    if kind == "point":
        return point.PointSplit(source.normal(size=(32, 2)), source.integers(2, size=32), "cpu"), 2, {"classes": 2}
    if kind == "puzzle":
        images = source.integers(256, size=(32, 4, 4))
        return puzzle.PuzzleSplit(images, source.integers(2, size=32), "cpu"), 16, {"classes": 2}
    if kind == "combination":
        items = source.integers(3, size=(32, 2))
        return combination.CombinationSplit(items, items.sum(1), np.zeros(32), (3, 3), False, "cpu"), 6, {"classes": 1}
    if kind == "tensor":
        entries = source.permutation(20)[:16]
        return tensor.TensorSplit([4, 5], source.normal(size=16), "cpu", entries=entries), 0, {"shape": [4, 5]}
    about = {"mean": [0.5], "std": [0.2], "distance": 0, "augment": False, "target": "number", "classes": 1}
    pool = torch.from_numpy(source.integers(256, size=(6, 1, 4, 4), dtype=np.uint8))
    chosen = source.integers(6, size=(32, 2))
    return composite.CompositeSplit(pool, chosen, chosen, chosen.sum(1), about, "cpu"), 32, about


@pytest.mark.parametrize("kind", ["point", "puzzle", "combination", "tensor", "composite"])
def test_every_kind_of_task_can_train_a_network(problem, kind):
    split, inputs, about = splits_of(kind)
    loss = "cross_entropy" if kind in ("point", "puzzle") else "squared"
    case = problem("cnn", splits={"train": split, "test": split}, loss=loss, batch_size=16, learning_rate=0.02, steps=20)
    case = replace(case, about=about, model_parameters={"inputs": inputs})
    case = own(case, Entries if kind == "tensor" else Flat)
    if kind == "combination":
        with pytest.raises(ValueError, match=r"must be of shape \(16, 1\), it is of shape \(16, 4\)"):
            train(replace(case, about=about | {"classes": 4}), [(0, 0.0)])
    together = train(case, [(0, 0.0), (1, 0.0)])
    assert same(train(case, [(1, 0.0)])[0], together[1])
    losses = [value for _, name, metric, value in together[0].history if (name, metric) == ("train", "loss")]
    assert losses[-1] < losses[0]


@pytest.mark.skipif(not find_spec("transformers"), reason="needs pip install -r envs/optional.txt")
def test_t5_computes_the_same_loss_as_the_library(problem):
    """The library computes its loss from labels."""
    case = problem("t5")
    weights = untrained(case)
    batch = case.splits["train"].evaluation_batches(1, 16, 16)[0][1]
    ours = batch.losses(case.model.forward(case.model_parameters, weights, batch, silent_tap), "cross_entropy").sum()
    network = case.model.Network(case.model_parameters, case.about).eval()
    network.load_state_dict({name: values[0] for name, values in weights.items()}, strict=False)
    row, step = batch.layout.positions.unbind(1)
    labels = torch.full((16, max(batch.layout.target_chunks.lengths)), -100)
    labels[row, step] = torch.where(batch.target_mask[0], batch.targets[0] + network.offset, -100)
    begin = network.offset + 1  # START; the library would start with its own symbol
    previous = torch.cat([torch.full((16, 1), begin), labels[:, :-1].clamp(min=network.offset)], 1)
    given = {"input_ids": batch.inputs[0], "attention_mask": batch.input_mask[0].long(), "decoder_input_ids": previous}
    # The library's softmax also includes input words.
    logits = network.t5(**given, labels=labels).logits[..., network.offset :]
    torch.testing.assert_close(ours, cross_entropy(logits, torch.where(labels < 0, -100, labels - network.offset), -100))
