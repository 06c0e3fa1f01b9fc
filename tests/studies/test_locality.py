"""IsSameClass, Pathfinder, the residual network, and the regularizer against the locality bias."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from support.configurations import STUDIES, read
from support.trained import problem_of, train, weights_of
from torch.nn import functional

from compositional import plugins, randomness
from compositional.configuration.configuration import Configuration
from compositional.datasets import pathfinder as generator
from compositional.figures import contact_sheet, locality
from compositional.figures.shared import style
from compositional.kinds.image import Batch, ImageSplit, load
from compositional.layers import batch_norm_statistics
from compositional.layers.functional import conv2d
from compositional.layers.tap import silent_tap
from compositional.models import Model, resnet18
from compositional.plugins import defaults
from compositional.regularizers import Step, interaction
from compositional.stages.aggregate import aggregate
from compositional.stages.split import make_split
from compositional.tables import examples
from compositional.tasks import is_same_class, pathfinder
from compositional.tasks.shared import pathfinder_solver, same_class
from compositional.training.problem import Problem, initial_weights, width_of

SMALL = {"widths": [4, 8], "blocks": [1, 1], "stem": "small", "initialization": "he"}
GEOMETRY = generator.Geometry(5, 112, 5, 2, 3, 1.8, 20, 8, 3, 10)


# --- residual network


@pytest.mark.parametrize(("blocks", "published"), [([2, 2, 2, 2], 11_689_512), ([3, 4, 6, 3], 21_797_672)])
def test_parameter_counts_equal_the_published_ones(blocks, published):
    task = {"image_shape": [3, 224, 224], "classes": 1000}
    weights = resnet18.initialize(defaults("models.resnet18") | {"blocks": blocks}, task, np.random.default_rng(0))
    assert sum(weight.numel() for weight in weights.values()) == published


@pytest.mark.parametrize("initialization", ["he", "uniform_stem", "uniform"])
def test_convolutions_have_the_configured_initialization(initialization):
    options = defaults("models.resnet18") | {"widths": [64, 64], "blocks": [1, 1], "initialization": initialization}
    weights = resnet18.initialize(options, {"image_shape": [1, 56, 56], "classes": 2}, np.random.default_rng(0))
    torch.manual_seed(0)
    for name, inputs, kernel in (("stem", 1, 7), ("stage0.block0.first", 64, 3), ("stage1.block0.shortcut", 64, 1)):
        found = weights[f"{name}.weight"]
        theirs = torch.nn.Conv2d(inputs, 64, kernel, bias=False).weight.detach()
        uniform = initialization == "uniform" or (initialization == "uniform_stem" and name == "stem")
        if not uniform:
            torch.nn.init.kaiming_normal_(theirs, mode="fan_out", nonlinearity="relu")
        assert found.shape == theirs.shape
        assert found.std().item() == pytest.approx(theirs.std().item(), rel=0.05)
        # A uniform distribution ends at sqrt(3) standard deviations, a normal one does not.
        assert [(own.abs().max() < 1.8 * own.std()).item() for own in (found, theirs)] == [uniform, uniform]


def modules_of(weights: dict[str, torch.Tensor], parameters: dict) -> torch.nn.Module:
    """The network made of standard modules with one run's weights, for images with one channel."""
    nn = torch.nn
    copied: dict[str, nn.Conv2d] = {}

    def normalized(name, inputs, outputs, kernel, stride, padding):
        copied[name] = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
        return nn.Sequential(copied[name], nn.BatchNorm2d(outputs))

    class Block(nn.Module):
        def __init__(self, name, inputs, outputs, stride):
            super().__init__()
            self.first = normalized(f"{name}.first", inputs, outputs, 3, stride, 1)
            self.second = normalized(f"{name}.second", outputs, outputs, 3, 1, 1)
            self.shortcut = normalized(f"{name}.shortcut", inputs, outputs, 1, stride, 0) if stride > 1 else nn.Identity()

        def forward(self, x):
            return (self.second(self.first(x).relu()) + self.shortcut(x)).relu()

    layers, channels = [], parameters["widths"][0]
    if parameters["stem"] == "imagenet":
        layers += [normalized("stem", 1, channels, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    else:
        layers += [normalized("stem", 1, channels, 3, 1, 1), nn.ReLU()]
    for stage, (width, count) in enumerate(zip(parameters["widths"], parameters["blocks"], strict=True)):
        for index in range(count):
            layers.append(Block(f"stage{stage}.block{index}", channels, width, 2 if stage and not index else 1))
            channels = width
    output = nn.Linear(channels, len(weights["output.bias"]))
    with torch.no_grad():
        for name, convolution in copied.items():
            convolution.weight.copy_(weights[f"{name}.weight"])
        output.weight.copy_(weights["output.weight"].T)
        output.bias.copy_(weights["output.bias"])
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), output)


@pytest.mark.parametrize(
    ("parameters", "classes", "shape"),
    [(SMALL, 2, (8, 16)), (SMALL | {"blocks": [2, 2], "stem": "imagenet"}, 3, (33, 41))],
)
def test_the_network_equals_standard_modules(parameters, classes, shape):
    task = {"image_shape": [1, *shape], "classes": classes}
    runs = [resnet18.initialize(parameters, task, np.random.default_rng(seed)) for seed in (0, 1)]
    weights = {name: torch.stack([run[name] for run in runs]) for name in runs[0]}
    pictures = torch.rand(2, 6, 1, *shape, generator=torch.Generator().manual_seed(0))
    batch = Batch(pictures, torch.zeros(2, 6, dtype=torch.int64), None)
    ours = resnet18.forward(parameters, weights, batch, silent_tap)
    for run in (0, 1):
        expected = modules_of(runs[run], parameters)(pictures[run])
        torch.testing.assert_close(ours[run][:, -expected.shape[1] :], expected, atol=1e-5, rtol=1e-4)
    if classes > 2:
        return
    assert not ours[..., 0].any()
    # The cross entropy of (0, f) is the binary cross entropy of the logit f.
    labels = torch.tensor([0, 1, 1, 0, 1, 0])
    torch.testing.assert_close(
        functional.cross_entropy(ours[0], labels), functional.binary_cross_entropy_with_logits(ours[0, :, 1], labels.float())
    )


def test_calibration_gives_the_statistics_of_the_examples():
    """With one batch for calibration, evaluation on that batch normalizes like training, except for the biased variance."""
    task = {"image_shape": [1, 8, 16], "classes": 3}
    weights = {name: value[None] for name, value in resnet18.initialize(SMALL, task, np.random.default_rng(0)).items()}
    batch = Batch(torch.rand(1, 50, 1, 8, 16), torch.zeros(1, 50, dtype=torch.int64), None)
    statistics = resnet18.calibrate(SMALL, weights, [batch])
    trained, evaluated = (resnet18.forward(SMALL, given, batch, silent_tap) for given in (weights, weights | statistics))
    torch.testing.assert_close(evaluated, trained, atol=2e-3, rtol=2e-3)
    halves = [Batch(part, batch.labels[:, :25], None) for part in batch.images.split(25, 1)]
    stem = conv2d(batch.images, weights["stem.weight"], padding=1)
    torch.testing.assert_close(
        resnet18.calibrate(SMALL, weights, halves)["stem.mean"], stem.mean((1, 3, 4)), atol=1e-5, rtol=1e-4
    )


def test_statistics_of_a_run_do_not_depend_on_the_others():
    values = torch.rand(3, 50, 7, 5, 6)
    shown = lambda batch, see: see("layer", batch)  # noqa: E731
    together = batch_norm_statistics.statistics(shown, [values, 2 * values])
    assert together["layer.mean"].shape == together["layer.variance"].shape == (3, 7)
    for run in range(3):
        alone = batch_norm_statistics.statistics(shown, [values[run : run + 1], 2 * values[run : run + 1]])
        assert all(torch.equal(alone[name][0], together[name][run]) for name in alone)


# --- interaction


def quadratic_step(matrix: torch.Tensor, images_: torch.Tensor, places, **parameters) -> Step:
    """The step of a network with two outputs whose logit is x^T M x / 2."""

    def outputs_of(batch):
        flat = batch.images.flatten(2)
        logit = ((flat @ matrix) * flat).sum(-1) / 2
        return torch.stack([torch.zeros_like(logit), logit], -1)

    batch = interaction.watch(Batch(images_, torch.tensor([[1, 0, 1, 1]]), None, places))
    generator_ = torch.Generator().manual_seed(0)
    return Step(
        defaults("regularizers.interaction") | parameters,
        batch,
        torch.ones(1),
        lambda shape: torch.randn(1, *shape, generator=generator_),
        lambda other: (outputs_of(other), []),
        outputs=outputs_of(batch),
    )


HALVES = ((slice(0, 1), slice(0, 2)), (slice(0, 1), slice(2, 4)))


def test_interaction_is_one_without_interaction():
    pictures = torch.rand(1, 4, 1, 1, 4, generator=torch.Generator().manual_seed(1)) + 0.1
    separate = torch.block_diag(torch.tensor([[2.0, 1.0], [1.0, 3.0]]), torch.tensor([[1.0, 0.5], [0.5, 2.0]]))
    torch.testing.assert_close(interaction.penalty(quadratic_step(separate, pictures, HALVES)), torch.ones(1))


def test_interaction_equals_the_hand_computed_value():
    """The logit is a . b for the halves a, b: the gradient at one half is the other, so R is |cos| of the neighbors' halves."""
    pictures = torch.randn(1, 4, 1, 1, 4, generator=torch.Generator().manual_seed(1))
    coupled = torch.tensor([[0.0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]])
    value = interaction.penalty(quadratic_step(coupled, pictures, HALVES)).item()
    flat = pictures[0].flatten(1)
    expected = []
    for other in (flat[:, 2:], flat[:, :2]):  # J is the right half or the left one, and G at I is the content of J
        cosine = functional.cosine_similarity(other, other.roll(-1, 0))
        expected.append(cosine.abs().mean().item())
    assert min(abs(value - each) for each in expected) < 1e-5


def test_each_run_exchanges_one_of_the_two_components():
    batch = Batch(torch.zeros(2, 4, 1, 1, 4), torch.zeros(2, 4, dtype=torch.int64), None, HALVES)
    noise = torch.tensor([[-0.1], [0.1]])  # uniform numbers below and above 1/2
    step = Step(defaults("regularizers.interaction"), batch, torch.ones(2), lambda shape: noise, None)
    inside, exchanged = (mask.flatten(1).tolist() for mask in interaction.regions(step))
    left, right = [True, True, False, False], [False, False, True, True]
    assert (inside, exchanged) == ([right, left], [left, right])


def test_the_score_for_several_classes_is_the_labels_score_minus_the_mean_of_the_others():
    # The scores of three pixels are x, y and z: for label 0, the result is x - (y + z) / 2.
    pictures = torch.rand(1, 2, 1, 1, 3, generator=torch.Generator().manual_seed(0))
    batch = interaction.watch(Batch(pictures, torch.tensor([[0, 2]]), None))
    found = interaction._gradient(batch, batch.images.flatten(2), torch.ones(1, 1, 1, 1, 3))
    expected = torch.tensor([[1.0, -0.5, -0.5], [-0.5, -0.5, 1.0]]) / math.sqrt(1.5)
    torch.testing.assert_close(found[0], expected)


def test_interaction_has_a_gradient_for_the_weights_through_the_packed_network():
    task = {"image_shape": [1, 6, 8], "classes": 2}
    weights = {n: w.double()[None] for n, w in resnet18.initialize(SMALL, task, np.random.default_rng(0)).items()}
    chosen = ["stem.weight", "stage1.block0.first.weight", "stage1.block0.first.scale", "output.weight"]
    pictures = torch.rand(1, 4, 1, 6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    regions = ((slice(0, 6), slice(0, 3)), (slice(0, 6), slice(5, 8)))

    def penalty(*values, labels=(1, 0, 1, 0)):
        given = weights | dict(zip(chosen, values, strict=True))

        def outputs_of(batch):
            return resnet18.forward(SMALL, given, batch, silent_tap)

        batch = interaction.watch(Batch(pictures, torch.tensor([labels]), None, regions))
        step = Step(
            defaults("regularizers.interaction"),
            batch,
            torch.ones(1),
            lambda shape: torch.zeros(1, *shape, dtype=torch.float64),
            lambda other: (outputs_of(other), []),
            outputs=outputs_of(batch),
        )
        return interaction.penalty(step)

    inputs = [weights[name].clone().requires_grad_() for name in chosen]
    assert torch.autograd.gradcheck(penalty, inputs, eps=1e-6, atol=1e-3, rtol=1e-3, fast_mode=True)
    # Batch normalization mixes the batch's gradients: if scores had the labels' signs, R would depend on the labels.
    assert torch.equal(penalty(*inputs), penalty(*inputs, labels=(1, 1, 0, 1)))


def test_squares_are_uniform_disjoint_and_keep_their_distance():
    uniform = torch.rand(4000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    first, second = interaction._squares(uniform, 9, 8, 2, 1)
    assert first.sum((1, 2)).unique().tolist() == second.sum((1, 2)).unique().tolist() == [4]
    for one, other in zip(first[:200], second[:200], strict=True):
        (y, x), (v, u) = (torch.nonzero(mask)[0].tolist() for mask in (one, other))
        assert max(abs(y - v), abs(x - u)) >= 3
    corners = first.float().mean(0)
    assert corners[0, 0].item() == pytest.approx(1 / 56, abs=0.006)
    assert corners[4, 4].item() == pytest.approx(4 / 56, abs=0.012)
    for side in (4, 6):  # with side 6, a square in the middle leaves no room
        with pytest.raises(ValueError, match="no room"):
            interaction._squares(uniform, side, side, 2, 1)
    first, second = interaction._squares(uniform, 7, 7, 2, 1)  # there is room wherever the first square is
    assert second.sum((1, 2)).unique().tolist() == [4]
    assert not (first & second).any()


def test_regions_that_are_components_are_refused_for_images_without_components():
    step = quadratic_step(torch.eye(4), torch.rand(1, 4, 1, 1, 4), (), regions="components")
    with pytest.raises(ValueError, match="ask for squares"):
        interaction.penalty(step)


# --- IsSameClass


def pairs_of_patterns(**parameters):
    """IsSameClass on images in which every pixel encodes the class and the number."""
    labels = np.repeat(np.arange(3), 4)
    pictures = np.broadcast_to((10 * labels + np.arange(12) % 4)[:, None, None, None], (12, 3, 4, 4)).astype(np.uint8)
    options = defaults("tasks.is_same_class") | {"train_pairs": 600, "test_pairs": 300, "canvas_height": 8, "canvas_width": 20}
    sources = {"train": (pictures, labels), "test": (pictures + 100, labels)}
    return same_class.build(sources, ([0.5, 0.4, 0.3], [0.2, 0.2, 0.1]), options | parameters)


def test_pairs_are_balanced_and_labelled():
    members, _ = pairs_of_patterns()
    member = members["train"].with_format("numpy")
    left, right = member["image"][:][:, 0, 0, 0], member["image"][:][:, 0, 0, -1]
    assert ((left // 10 == right // 10) == member["label"][:].astype(bool)).all()
    assert abs(member["label"][:].mean() - 0.5) < 0.1
    different = (right // 10)[(member["label"][:] == 0) & (left // 10 == 1)]
    assert set(different.tolist()) == {0, 2}


def test_the_canvas_is_centered_with_the_configured_distance():
    members, about = pairs_of_patterns(distance=7)
    member = members["train"].with_format("numpy")
    split = ImageSplit(member["image"][:], member["label"][:], None, "cpu", about)
    picture = split.batch(torch.tensor([[0]])).images[0, 0]
    # In the paper: left column 112 - 32 - floor(d / 2), row 112 - 16; here 10 - 4 - 3 and 4 - 2.
    filled = picture.abs().sum(0) > 0
    assert torch.nonzero(filled.any(0)).flatten().tolist() == [*range(3, 7), *range(14, 18)]
    assert torch.nonzero(filled.any(1)).flatten().tolist() == [2, 3, 4, 5]
    for column, stored in ((3, 0), (14, 4)):
        value = member["image"][0][1, 0, stored] / 255
        assert picture[1, 2, column].item() == pytest.approx((value - 0.4) / 0.2, abs=1e-5)


def test_pairs_are_the_same_at_every_distance():
    near, far = (pairs_of_patterns(distance=distance)[0] for distance in (0, 7))
    assert all(near[name].to_dict() == far[name].to_dict() for name in ("train", "test"))


def test_a_distance_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match="distance may be up to 12"):
        pairs_of_patterns(distance=13)


def test_cifar_pairs_hold_out_their_test_images(tmp_path, monkeypatch):
    pictures = np.arange(60 * 3 * 32 * 32, dtype=np.int64).reshape(60, 3, 32, 32).astype(np.uint8)
    monkeypatch.setattr("compositional.datasets.cifar10.load", lambda raw: {"train": (pictures, np.arange(60) % 3)})
    monkeypatch.setattr(is_same_class, "HELD_OUT", 20)
    drawn = {}
    monkeypatch.setattr(same_class, "build", lambda sources, moments, parameters: drawn.update(sources))
    is_same_class.build(tmp_path, {})
    assert (len(drawn["train"][0]), len(drawn["test"][0])) == (40, 20)
    assert (drawn["test"][1] == np.arange(40, 60) % 3).all()


# --- Pathfinder


def test_contours_have_the_configured_shape():
    for number in range(25):
        sample = generator.generate(GEOMETRY, number)
        ours = sample.contours[:2]
        assert [len(contour) for contour in ours] == [5, 5]
        assert np.hypot(*(ours[0][0, 0] - ours[1][0, 0])) == pytest.approx(20)
        assert (np.abs(ours[0][0, 0] - 56) <= 56 - 2 * 20).all()
        for contour in sample.contours:
            lengths = np.hypot(*(contour[:, 1] - contour[:, 0]).T)
            assert lengths == pytest.approx([5] * len(contour))
            for one, two in pairwise(contour):
                pivots = one[1] + 3 * (one[1] - one[0]) / 5, two[0] - 3 * (two[1] - two[0]) / 5
                assert np.hypot(*(pivots[0] - pivots[1])) < 1e-9
                turn = math.acos(np.clip((one[1] - one[0]) @ (two[1] - two[0]) / 25, -1, 1))
                assert turn <= math.pi / 2 / 1.8 + 1e-9
        ends = [contour[side, tip] for contour in ours for side, tip in ((0, 0), (-1, 1))]
        first, last = (int(np.argmin([np.hypot(*(end - mark)) for end in ends])) for mark in sample.marks)
        assert (first in (0, 2), last in (1, 3)) == (True, True)
        assert (first // 2 == last // 2) == bool(sample.label)
        every = np.concatenate(sample.contours).reshape(-1, 2)
        assert every.min() > GEOMETRY.border
        assert every.max() < GEOMETRY.side - GEOMETRY.border


def test_contours_turn_by_the_published_distribution():
    """Where nothing is in the way, an angle a has density cos(1.8 a)^2: the mean of (1.8 a)^2 is pi^2 / 12 - 1 / 2."""
    geometry = generator.Geometry(3, 300, 5, 2, 3, 1.8, 27, 22, 3, 0)
    dashes = np.array([contour for number in range(150) for contour in generator.generate(geometry, number).contours])
    along = (dashes[:, :, 1] - dashes[:, :, 0]) / 5
    turns = 1.8 * np.arccos(np.clip((along[:, 1:] * along[:, :-1]).sum(-1), -1, 1)).ravel()
    assert np.mean(turns**2) == pytest.approx(math.pi**2 / 12 - 0.5, abs=4 * np.std(turns**2) / math.sqrt(len(turns)))


def test_a_first_dash_that_finds_no_room_is_placed_again():
    """Its tip may be inside the border if seed_distance is small."""
    geometry = generator.Geometry(2, 112, 5, 2, 3, 1.8, 8, 36, 3, 0)
    for number in range(5):
        every = np.concatenate(generator.generate(geometry, number).contours)
        assert every.min() > 36
        assert every.max() < 112 - 36
    with pytest.raises(ValueError, match="112 pixels with a border of 56; lower path_length or border"):
        generator.generate(replace(geometry, border=56), 0)


def test_distractors_follow_the_published_counts():
    def distractors(length):
        return generator.Geometry(length, 300, 5, 2, 3, 1.8, 27, 22, 3, 30).distractors

    assert [distractors(length) for length in (3, 5, 7, 9)] == [(30, 1), (18, 1), (13, 2), (10, 3)]


def test_the_tracer_finds_the_path_and_a_gap_in_it():
    joined = next(sample for number in range(20) if (sample := generator.generate(GEOMETRY, number)).label)
    assert pathfinder_solver.trace(joined.image, GEOMETRY) == (1, 5)
    own = min(joined.contours[:2], key=lambda contour: np.hypot(*(contour[0, 0] - joined.marks[0])))
    x, y = own[2].mean(0).round().astype(int)
    cut = joined.image.copy()
    cut[y - 4 : y + 5, x - 4 : x + 5] = 0
    assert pathfinder_solver.trace(cut, GEOMETRY) == (0, 0)
    assert pathfinder_solver.trace(np.zeros_like(cut), GEOMETRY) == (None, 0)


OPTIONS = {"train_images": 100, "test_images": 40, "side": 112, "stored_side": 56, "path_length": 5}
OPTIONS |= {"seed_distance": 20, "border": 8, "distractor_paddles": 10}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """A small Pathfinder task made by two processes: its members and the content of task.json."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pathfinder, "CHUNK", 50)
        return pathfinder.build(tmp_path_factory.mktemp("raw"), defaults("tasks.pathfinder") | OPTIONS, processes=2)


@pytest.mark.parametrize("left", [0, 1000], ids=["empty", "cut"])
def test_a_file_of_images_that_was_cut_short_is_made_again(tmp_path, left):
    path = pathfinder._make_chunk(tmp_path, GEOMETRY, 56, 2, 0)
    whole = path.read_bytes()
    path.write_bytes(whole[:left])
    assert pathfinder._make_chunk(tmp_path, GEOMETRY, 56, 2, 0) == path
    with np.load(path) as chunk:
        assert len(chunk["images"]) == len(chunk["labels"]) == len(chunk["traced"]) == 2
    made = path.stat().st_mtime_ns
    pathfinder._make_chunk(tmp_path, GEOMETRY, 56, 2, 0)
    assert path.stat().st_mtime_ns == made  # a whole file is used


def test_a_killed_generation_of_images_resumes_and_ends_with_the_same_images(paths, tmp_path, monkeypatch):
    monkeypatch.setattr(pathfinder, "CHUNK", 50)
    members, about = paths
    generate = generator.generate
    numbers = []

    def killed(geometry, number):
        if number == 60:
            raise KeyboardInterrupt
        return generate(geometry, number)

    monkeypatch.setattr(generator, "generate", killed)
    with pytest.raises(KeyboardInterrupt):
        pathfinder.build(tmp_path, defaults("tasks.pathfinder") | OPTIONS)
    assert [path.name for path in tmp_path.rglob("*.npz")] == ["0000000.npz"]

    def counted(geometry, number):
        numbers.append(number)
        return generate(geometry, number)

    monkeypatch.setattr(generator, "generate", counted)
    again, told = pathfinder.build(tmp_path, defaults("tasks.pathfinder") | OPTIONS)
    assert numbers == list(range(50, 150))
    assert told == about
    for name in members:
        assert (members[name].with_format("numpy")["image"][:] == again[name].with_format("numpy")["image"][:]).all()


def test_every_image_is_verified(paths):
    members, about = paths
    report = about["verification"]
    assert report["images"] == 140  # the configured number, from three chunks
    assert report["tracer_agrees"] >= 139
    assert report["connected"] == sum(members["train"]["label"]) + sum(members["test"]["label"])
    assert report["paths_of_full_length"] >= report["connected"] - 1


def test_wrong_labels_are_refused():
    labels = np.arange(400) % 2
    traced = np.stack([labels, 5 * labels], 1)
    assert pathfinder._verify(labels, traced, 5)["tracer_contradicts"] == 0
    traced[:10, 0] ^= 1
    with pytest.raises(ValueError, match="answers disagree with the labels"):
        pathfinder._verify(labels, traced, 5)
    ones = np.ones(400, int)
    with pytest.raises(ValueError, match="not balanced"):
        pathfinder._verify(ones, np.stack([ones, 5 * ones], 1), 5)


# --- training and figures


@pytest.fixture(scope="module")
def digits_apart(tmp_path_factory):
    """The split of digits at a distance, made like by the workflow."""
    folder = tmp_path_factory.mktemp("splits") / "same_digit"
    small = {"train_pairs": 300, "test_pairs": 100, "canvas_height": 8, "canvas_width": 24, "distance": 8}
    make_split("same_digit", "tasks.is_same_digit", defaults("tasks.is_same_digit") | small, folder / "none", folder)
    return folder


def problem(folder, regularizer=None, **settings) -> Problem:
    """The reduced residual network on a task's folder."""
    about = json.loads((folder / "task.json").read_text())
    base = {"optimizer": "sgd", "momentum": 0.9, "steps": 6, "record_every": 3, "batch_size": 16, "curve_examples": 64}
    return problem_of("resnet18", about, load(folder, "cpu"), base | settings, SMALL, regularizer)


def test_training_at_paper_scale_has_the_published_settings():
    configuration = Configuration(read("config.yaml", *STUDIES, "paper/tensor_factorization.yaml"))
    cases = [
        ("is_same_class_distance160", "resnet18", "pairs", 5000),
        ("pathfinder_full_path_length9", "resnet18_gray", "images", 10_000),
    ]
    for task, model, unit, count in cases:
        data, settings = configuration.parameters("tasks", task), configuration.settings(task, model)
        assert [data[f"{member}_{unit}"] for member in ("train", "test")] == [count, 10_000]
        published = {"steps": 150 * math.ceil(count / 64), "batch_size": 64, "optimizer": "sgd", "learning_rate": 0.01}
        published |= {"momentum": 0.9, "weight_decay": 0, "decay": 1.0, "clip": None}
        assert settings | published == settings


def test_momentum_equals_pytorch(digits_apart):
    case = problem(digits_apart, decay=1.0, clip=None)
    (state,) = train(case, [(0, 0.0)])
    parameters = {name: tensor.clone().requires_grad_() for name, tensor in initial_weights(case, 0).items()}
    optimizer = torch.optim.SGD(parameters.values(), lr=case.settings["learning_rate"], momentum=0.9)
    split = case.splits["train"]
    for rows in split.draw(randomness.derive("test", "resnet18", 0, "batches"), range(6), 16):
        batch = split.batch(torch.from_numpy(rows)[None])
        weights = {name: tensor[None] for name, tensor in parameters.items()}
        outputs = resnet18.forward(SMALL, weights, batch, silent_tap)
        optimizer.zero_grad()
        functional.cross_entropy(outputs[0], batch.labels[0]).backward()
        optimizer.step()
    ours = weights_of(case, [state])
    for name, tensor in parameters.items():
        torch.testing.assert_close(ours[name][0], tensor.detach(), atol=1e-5, rtol=1e-3)


def test_a_task_without_redundant_component_cannot_be_recombined(digits_apart):
    with pytest.raises(ValueError, match="no redundant component"):
        train(problem(digits_apart, "recombination"), [(0, 1.0)])


def test_a_contact_sheet_is_drawn_from_a_table_of_examples(digits_apart, tmp_path):
    aggregate([digits_apart], tmp_path / "table.csv")
    table = pd.read_csv(tmp_path / "table.csv")
    assert len(table) == 2 * 2 * examples.EXAMPLES
    split = load(digits_apart, "cpu")["train"]
    picture = examples.decode(table.image.iloc[0])
    stored = split.images[int(table.example.iloc[0]), 0].numpy()
    assert (picture[:, :8] == stored[:, :8]).all()
    assert (picture[:, 16:] == stored[:, 8:]).all()
    options = defaults("figures.contact_sheet") | {"titles": {"same_digit": "digits"}, "classes": {"0": "no", "1": "yes"}}
    figure, caption = contact_sheet.draw(table, options)
    assert len(figure.axes) == 12
    assert "300 train" in caption


def accuracy_table(values: dict[tuple[str, float], list[float]]) -> pd.DataFrame:
    rows = [
        (task, "m", "interaction" if strength else "none", strength, seed, split, "accuracy", value)
        for (task, strength), seeds in values.items()
        for seed, value in enumerate(seeds)
        for split in ("train", "test")
    ]
    return pd.DataFrame(rows, columns=["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"])


def test_the_locality_figure_states_the_fall_and_judges_it():
    options = defaults("figures.locality") | {"tasks": {"near": 0, "far": 8}, "published": {"0.0": {"far": 0.5}}}
    table = accuracy_table(
        {
            ("near", 0.0): [0.9, 0.91, 0.92],
            ("far", 0.0): [0.5, 0.51, 0.52],
            ("near", 1.0): [0.9] * 3,
            ("far", 1.0): [0.8, 0.85, 0.9],
        }
    )
    _, caption = locality.draw(table, options)
    assert "distance (pixels) 8: test 0.510 ± 0.008, train 0.510; published 0.500" in caption
    assert "0.400 ± 0.000 at lambda 0, 0.050 at lambda 1" in caption
    assert caption.endswith("holds")
    assert "± after accuracies below, their standard deviation (population)" in caption
    assert "± after falls and differences is half of such an interval" in caption
    assert locality.draw(table[table.seed < 2], options)[1].endswith("open, too few seeds to judge")
    lost = table.assign(value=table.value.mask((table["lambda"] == 1) & (table.seed > 0)))  # one run is left
    assert locality.draw(lost, options)[1].endswith("open, too few seeds to judge")
    spread = table.assign(value=table.value.mask((table.task == "far") & (table["lambda"] == 1) & (table.seed == 0), 0.55))
    assert locality.draw(spread, options)[1].endswith("open, the interval includes the bound: less, higher")
    bounds = {"far": {0: 0.0, 1: 0.0}, "near": {0: -0.34, 1: -0.35}}  # the fall without it is 0.060 ± 0.075
    shifted = [
        value + bounds[task][strength] + (seed - 1) * 0.03 * (task == "near" and not strength)
        for task, strength, seed, value in zip(table.task, table["lambda"], table.seed, table.value, strict=True)
    ]
    assert locality.draw(table.assign(value=shifted), options)[1].endswith("open, the interval includes the bound: fall without")
    worse = table.assign(value=table.value.mask((table["lambda"] == 1) & (table.split == "train"), 0.45))
    assert locality.draw(worse, options)[1].endswith("open, its training accuracy at the end is lower by more than 0.05")
    table.loc[(table["lambda"] == 1) & (table.task == "far"), "value"] = 0.55
    assert locality.draw(table, options)[1].endswith("DOES NOT HOLD")
    nothing = table.assign(value=table.value.mask(table["lambda"] == 1, 0.5))  # does not fall, because nothing is learned
    assert locality.draw(nothing, options)[1].endswith("open, the interval includes the bound: higher")
    table.loc[table["lambda"] == 1, "value"] = 0.47
    assert locality.draw(table, options)[1].endswith("DOES NOT HOLD")
    lost = table.assign(value=table.value.where((table["lambda"] == 0) | (table.task == "near")))
    figure, caption = locality.draw(lost[(lost.seed == 0) | (lost.task == "far")], options)
    assert "distance (pixels) 0: test 0.900 (1 seed), train 0.900" in caption
    assert "distance (pixels) 8: all 3 runs diverged" in caption
    assert caption.endswith("lambda 0 and 1: unknown")
    assert "nan" not in caption
    assert figure.axes[0].get_xlabel() == "distance (pixels)"
    named = {
        text.get_text(): handle
        for text, handle in zip(figure.legends[0].get_texts(), figure.legends[0].legend_handles, strict=True)
    }
    assert named.keys() >= {"training set", "chance", "lambda = 1"}
    assert len(named[style.DEVIATION].get_segments()[0]) > 1  # it shows a bar
    low, _ = locality.draw(table.assign(value=0.1), options)
    assert [one.axes[0].get_ylim()[0] < limit for one, limit in ((low, 0.1), (figure, 0.4))] == [True, False]


def test_packs_of_a_large_model_are_not_padded_on_cuda(digits_apart):
    case = problem(digits_apart)
    assert width_of(case) is None
    case.device = "cuda"
    assert width_of(case) == 1
    case.model = plugins.load(Model, "models.cnn")
    assert width_of(case) == 64
    case.settings = case.settings | {"cuda_width": 5}
    assert width_of(case) == 5
    case.device = "cpu"
    assert width_of(case) is None
