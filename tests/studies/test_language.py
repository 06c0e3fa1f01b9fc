"""The language study: its tasks, layers, regularizer, decoding and scores."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from dataclasses import replace
from importlib import import_module
from itertools import product

import numpy as np
import pytest
import torch
from support import raw, small
from support.trained import untrained, weights_of
from torch import nn
from torch.nn import functional

from compositional import plugins, randomness
from compositional.configuration.configuration import Configuration
from compositional.datasets import geoquery, scan
from compositional.evaluation import decoding, error_types, metrics, representations
from compositional.kinds.sequence import SequenceSplit
from compositional.language.vocabulary import START, Vocabulary
from compositional.layers import attention, softmax
from compositional.layers.functional import SMALL_VOCABULARY, divergence, embedding
from compositional.layers.ragged import Chunks, Layout
from compositional.layers.tap import dropout, silent_tap
from compositional.models import Model, meta_sequence_to_sequence, primitive_attention, transformer
from compositional.plugins import declarations, defaults
from compositional.records.surroundings import MIRROR
from compositional.regularizers import Representation, Step, consistency
from compositional.stages.download import DownloadError, fetch
from compositional.stages.split import audit, make_split
from compositional.tasks import cogs, iwslt
from compositional.training.loop import train_runs
from compositional.training.problem import Problem, buffers, initial_weights
from compositional.training.state import fresh_state
from compositional.training.step import Tap

# Lines and bytes of the published files at github brendenlake/SCAN, as recorded by the Hugging Face library `datasets`.
PUBLISHED = {
    "scan_turn_left": {"train": (21890, 3974537), "test": (1208, 173679)},
    "scan_templates": {"train": (15225, 2558693), "test": (4476, 1243177)},
    "scan_length": {"train": (16990, 2723418), "test": (3920, 1356970)},
}


def build(task: str, raw=None, **options):
    return import_module(f"compositional.tasks.{task}").build(raw, defaults(f"tasks.{task}") | options)


def lines(member) -> list[str]:
    return [f"IN: {command} OUT: {actions}\n" for command, actions in zip(member["input"], member["output"], strict=True)]


@pytest.mark.parametrize("task", PUBLISHED)
def test_scan_splits_have_the_published_lines_and_bytes(task):
    members, about = build(task)
    assert {name: (len(member), sum(map(len, lines(member)))) for name, member in members.items()} == PUBLISHED[task]
    assert audit(members, about["disjoint"])[0]["in_training"] == 0
    assert {line for member in members.values() for line in lines(member)} <= {f"IN: {a} OUT: {b}\n" for a, b in scan.commands()}


def test_simple_split_is_a_draw_of_all_commands():
    members, _ = build("scan_simple")
    assert {name: len(member) for name, member in members.items()} == {"train": 16728, "test": 4182}
    drawn = sorted(members["train"]["input"]) + sorted(members["test"]["input"])
    assert Counter(drawn) == Counter(command for command, _ in scan.commands())
    assert set(build("scan_simple", draw=1)[0]["test"]["input"]) != set(members["test"]["input"])


def test_episodes_follow_their_support_and_never_train_the_true_assignment():
    members, about = build("scan_jump_episodes", episodes=400)
    truth = dict(scan.commands())
    for name, member in members.items():
        for source, actions in list(zip(member["input"], member["output"], strict=True))[:400]:
            support, command = source.split(" do ")
            assigned = dict(pair.split(" means ") for pair in support.split(" , "))
            assert (assigned == scan.ACTIONS) == (name == "test")
            true = {scan.ACTIONS[verb]: action for verb, action in assigned.items()}
            assert actions == " ".join(true.get(action, action) for action in truth[command].split())
    assert len(members["test"]) == 7706
    assert audit(members, about["disjoint"])[0]["in_training"] == 0


@pytest.fixture
def cogs_files(tmp_path):
    """A small COGS: files in the published format."""
    rows = {
        "train.tsv": ["A rose was helped .\trose ( x _ 1 )\tin_distribution", "shark\tLAMBDA a . shark ( a )\tprimitive"],
        "train_100.tsv": ["The shark ate .\tshark\tin_distribution"] * 3,
        "dev.tsv": ["A cake ate .\tcake\tin_distribution"],
        "test.tsv": ["A girl ate .\tgirl\tin_distribution"],
        "gen.tsv": ["The shark .\tshark\tprim_to_subj_common", "A a a .\trose\tpp_recursion", "B .\tcake\tpp_recursion"],
    }
    for name, content in rows.items():
        (tmp_path / name).write_text("\n".join(content) + "\n")
    return tmp_path


def test_cogs_has_its_categories_by_group(cogs_files):
    members, about = build("cogs", cogs_files)
    assert [count["member"] for count in audit(members, about["disjoint"])] == ["test", "validation", "in_distribution"]
    assert members["test"]["category"] == ["lexical/prim_to_subj_common", "structural/pp_recursion", "structural/pp_recursion"]
    assert members["train"].column_names == ["input", "output"]
    assert {name: len(member) for name, member in members.items()} == {
        "train": 2,
        "validation": 1,
        "in_distribution": 1,
        "test": 3,
    }
    assert len(build("cogs", cogs_files, exposure_examples=100)[0]["train"]) == 3
    assert set(cogs.STRUCTURAL) == {"cp_recursion", "pp_recursion", "obj_pp_to_subj_pp"}


def test_a_task_requires_only_the_files_that_its_options_need():
    empty = {
        "device": "cpu",
        "jobs_per_gpu": 1,
        "sources": ["mirror"],
        "mirror": None,
        "store": None,
        "pack_size": {"cpu": {"default": 1}, "cuda": {"default": 1}},
    }
    empty |= {"checkpoint_seconds": 1, "models": {}, "regularizers": {}, "studies": {}}
    tasks = {"cogs_100": {"module": "cogs", "exposure_examples": 100}}
    configuration = Configuration(empty | {"tasks": tasks})
    assert configuration.raw_files("cogs") == ["LICENSE", "dev.tsv", "gen.tsv", "test.tsv", "train.tsv"]
    assert configuration.raw_files("cogs_100") == ["LICENSE", "dev.tsv", "gen.tsv", "test.tsv", "train_100.tsv"]


def test_a_file_known_by_its_git_identity_is_checked(tmp_path, monkeypatch):
    from compositional.datasets import cogs as dataset

    # `git hash-object` of a file that contains "hello\n".
    monkeypatch.setitem(dataset.FILES["train_100.tsv"], "git_blob", "ce013625030ba8dba906f756967f9e9ca394464a")
    monkeypatch.delenv(MIRROR, raising=False)
    (tmp_path / "cogs").mkdir()
    (tmp_path / "cogs" / "train_100.tsv").write_text("hello\n")
    fetch("cogs", "train_100.tsv", tmp_path / "here", ["mirror"], str(tmp_path))
    assert (tmp_path / "here").read_text() == "hello\n"
    (tmp_path / "cogs" / "train_100.tsv").write_text("hullo\n")
    with pytest.raises(DownloadError, match="git blob"):
        fetch("cogs", "train_100.tsv", tmp_path / "there", ["mirror"], str(tmp_path))
    assert not (tmp_path / "there").exists()


def test_geoquery_fills_in_the_names_of_places(tmp_path):
    def sentence(text, place, where):
        return {"question-split": where, "text": text, "variables": {"var0": place}}

    templates = [
        {
            "logic": ["( A , _capital ( var0 ) )"],
            "query-split": "train",
            "sentences": [sentence("capital of var0", "new york", "train"), sentence("var0 's capital", "iowa", "test")],
        },
        {"logic": ["( A , _size ( var0 ) )"], "query-split": "test", "sentences": [sentence("size of var0", "ohio", "train")]},
        {"logic": ["( A , _rivers ( A ) )"], "query-split": "dev", "sentences": [sentence("rivers", "", "dev")]},
    ]
    (tmp_path / "geography-logic.txt").write_text(json.dumps(templates))
    by_query, about = build("geoquery", tmp_path)
    assert by_query["train"]["input"] == ["capital of new york", "iowa 's capital"]
    assert by_query["train"]["output"][0] == "( A , _capital ( new york ) )"
    assert by_query["test"]["input"] == ["size of ohio"]
    assert about["in_distribution"] == "train"
    assert by_query["validation_recombinations"]["input"] == ["rivers"]  # not what stands for what was learned
    by_question, _ = build("geoquery", tmp_path, split="question", entities="variables")
    assert by_question["test"]["input"] == ["var0 's capital"]
    published, about = build("geoquery", tmp_path, train_on_validation=True)
    assert published["train"]["input"] == ["capital of new york", "iowa 's capital", "rivers"]
    assert set(published) == {"train", "test"}
    assert published["test"]["category"] == ["asks/size; names/none"]
    rules = [count["columns"] for count in audit(published, about["disjoint"])]
    assert rules == [["input"], ["output"]]  # in the query split no form is in both
    assert build("geoquery", tmp_path, split="question", train_on_validation=True)[1]["in_distribution"] == "train"


@pytest.mark.parametrize(
    ("form", "category"),
    [
        ("( A , ( _population ( B , A ) , _const ( B , _stateid ( texas ) ) ) )", "asks/population; names/state"),
        ("( A , _longest ( A , ( _river ( A ) , _traverse ( A , B ) , _state ( B ) ) ) )", "asks/longest; names/none"),
        (
            "( A , ( _loc ( B , A ) , _const ( B , _cityid ( austin , tx ) ) , _const ( A , _stateid ( texas ) ) ) )",
            "asks/loc; names/city; names/state",
        ),
    ],
)
def test_geoquery_has_categories_by_predicate_and_named_places(form, category):
    assert geoquery.category(form) == category


@pytest.fixture
def iwslt_files(tmp_path):
    raw.iwslt(tmp_path)
    return tmp_path


def test_iwslt_subwords_can_be_joined_to_the_text(iwslt_files):
    members, about = build("iwslt", iwslt_files, subwords=300)
    for member, name in (("validation", "tst2012"), ("test", "tst2013")):
        for column, language in (("input", "en"), ("output", "vi")):
            text = (iwslt_files / f"{name}.{language}").read_text(encoding="utf-8").splitlines()
            assert [decoding.join_subwords(row) for row in members[member][column]] == text
    assert about["decoding"] == {"beam": 5, "bleu": True}
    # White space other than a space would be lost between subwords, and with it the end of the word.
    lines = (iwslt_files / "tst2013.en").read_text(encoding="utf-8").splitlines()
    (iwslt_files / "tst2013.en").write_text("\n".join(["walk\u00a0house\u2028 walk", *lines[1:]]) + "\n", encoding="utf-8")
    members, _ = build("iwslt", iwslt_files, subwords=300)
    assert decoding.join_subwords(members["test"]["input"][0]) == "walk house walk"
    shorter, _ = build("iwslt", iwslt_files, subwords=300, longest=3)
    assert max(len(side.split()) for row in shorter["train"] for side in (row["input"], row["output"])) == 3
    turned, _ = build("iwslt", iwslt_files, subwords=300, source="vi")
    text = (iwslt_files / "tst2013.vi").read_text(encoding="utf-8").splitlines()
    assert [decoding.join_subwords(row) for row in turned["test"]["input"]] == text
    (iwslt_files / "tst2013.vi").write_text("một\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"tst2013\.en has 20 lines, but tst2013\.vi has 1"):
        iwslt.build(iwslt_files, defaults("tasks.iwslt"))


def test_iwslt_leaves_out_pairs_with_an_empty_side(tmp_path):
    for name in ("train", "tst2012", "tst2013"):
        (tmp_path / f"{name}.en").write_text("a\n\nc\nd\n", encoding="utf-8")
        (tmp_path / f"{name}.vi").write_text("x\ny\n \nz\n", encoding="utf-8")
    assert import_module("compositional.datasets.iwslt").load(tmp_path, "en", "vi")["train"] == [("a", "x"), ("d", "z")]


def test_bleu_of_known_sentences():
    same = [("", "▁a ▁b ▁c ▁d ▁e", "▁a ▁b ▁c ▁d ▁e")]
    assert decoding._bleu(same, words=False) == pytest.approx(100)
    # 4 of 5 words, 3 of 4 pairs, 2 of 3 triples and 1 of 2 quadruples are right; there is no brevity penalty.
    other = [("", "▁a ▁b ▁c ▁d ▁e", "▁a ▁b ▁c ▁d ▁f")]
    assert decoding._bleu(other, words=False) == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    # A shortened sentence: all its n-grams are right, and the brevity penalty is exp(1 - 5 / 4).
    short = [("", "▁a ▁b ▁c ▁d ▁e", "▁a ▁b ▁c ▁d")]
    assert decoding._bleu(short, words=False) == pytest.approx(100 * math.exp(-1 / 4))


def test_mini_imagenet_from_pictures_to_a_resnet_step(tmp_path):
    from PIL import Image

    from compositional.datasets import mini_imagenet

    source = np.random.default_rng(0)
    raw = tmp_path / "raw"
    raw.mkdir()
    for name in ("train", "validation", "test"):
        pixels = source.integers(256, size=(24, 90, 120, 3), dtype=np.uint8)
        rows = [{"image": Image.fromarray(image), "label": index % 3} for index, image in enumerate(pixels)]
        (raw / f"{name}.npz").write_bytes(mini_imagenet.pack(rows))
    assert mini_imagenet.pack(rows) == (raw / "test.npz").read_bytes()
    options = {"train_images": 20, "validation_images": 8, "test_images": None}
    make_split("mini", "tasks.mini_imagenet", options, raw, tmp_path / "split", raw_files=["train.npz"])
    about = json.loads((tmp_path / "split" / "task.json").read_text())
    assert about["items"] == {"train": 20, "validation": 8, "test": 24}
    assert about["image_shape"] == [3, 84, 84]
    assert about["raw_sha256"]["train.npz"] == hashlib.sha256((raw / "train.npz").read_bytes()).hexdigest()
    model = plugins.load(Model, "models.resnet18")
    small = defaults("models.resnet18") | {"widths": [4, 8], "blocks": [1, 1]}
    settings = defaults("training.settings") | {"steps": 2, "batch_size": 8, "record_every": 2, "curve_examples": 16}
    settings |= {"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.01, "learning_rate": 0.1, "decay": 0.1, "decay_every": 1}
    splits = import_module("compositional.kinds.image").load(tmp_path / "split", "cpu")
    case = Problem("mini", about, splits, "resnet18", model, small, None, {}, settings, "cpu")
    state = fresh_state(case, 0, 0.0)
    train_runs(case, [state], metrics.measure)
    assert state.diverged_at is None
    assert {split for _, split, metric, _ in state.history if metric == "accuracy"} == {"train", "validation", "test"}


def test_weight_decay_and_the_rates_warmup_and_drops_equal_pytorch(problem):
    options = {"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.05, "learning_rate": 0.1, "decay": 0.1, "decay_every": 2}
    case = problem("cnn", steps=4, record_every=4, loss="cross_entropy", clip=None, warmup=2, **options)
    state = fresh_state(case, 3, 0.0)
    train_runs(case, [state], metrics.measure)
    weights = {name: tensor.clone().requires_grad_() for name, tensor in initial_weights(case, 3).items()}
    optimizer = torch.optim.SGD(weights.values(), lr=0.1, momentum=0.9, weight_decay=0.05)
    schedules = [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=1),
        torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1),
    ]
    rows = case.splits["train"].draw(randomness.derive("test", "cnn", 3, "batches"), range(4), 64)
    for step in range(4):
        batch = case.splits["train"].batch(torch.from_numpy(rows[step])[None])
        named = {name: tensor[None] for name, tensor in weights.items()}
        outputs = case.model.forward(case.model_parameters, named, batch, silent_tap)
        optimizer.zero_grad()
        batch.losses(outputs, "cross_entropy").mean().backward()
        optimizer.step()
        for schedule in schedules:
            schedule.step()
    ours = weights_of(case, [state])
    for name, tensor in weights.items():
        torch.testing.assert_close(ours[name][0], tensor.detach(), atol=1e-5, rtol=1e-4)


def test_large_vocabularies_look_up_the_same_rows_with_the_same_gradient():
    torch.manual_seed(0)
    vocabulary = SMALL_VOCABULARY + 6
    tokens = torch.randint(vocabulary, (3, 7, 5))
    table = torch.randn(3, vocabulary, 4, requires_grad=True)
    found = embedding(tokens, table)
    expected = torch.stack([rows[index] for rows, index in zip(table, tokens, strict=True)])
    assert torch.equal(found, expected)
    weight = torch.randn_like(found)
    (ours,) = torch.autograd.grad((found * weight).sum(), table)
    (theirs,) = torch.autograd.grad((expected * weight).sum(), table)
    torch.testing.assert_close(ours, theirs)
    alone = table[1:2].detach().requires_grad_()
    (lone,) = torch.autograd.grad((embedding(tokens[1:2], alone) * weight[1:2]).sum(), alone)
    assert torch.equal(lone[0], ours[1])


@pytest.mark.parametrize("vocabulary", [5, SMALL_VOCABULARY + 6])
def test_losses_equal_pytorch_and_do_not_depend_on_other_runs(scan_splits, vocabulary):
    torch.manual_seed(0)
    split = scan_splits["train"]
    rows = torch.from_numpy(split.draw(1, range(3), 32))
    batch = split.batch(rows, split.training_layout(32))
    batch = replace(batch, targets=torch.randint(vocabulary, batch.targets.shape))
    logits = torch.randn(*batch.targets.shape, vocabulary, requires_grad=True)
    losses = batch.losses(logits, "cross_entropy")
    expected = -logits.log_softmax(-1).gather(2, batch.targets.unsqueeze(-1)).squeeze(-1) * batch.target_mask
    torch.testing.assert_close(losses, expected)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    lone = logits[1:2].detach().requires_grad_()
    alone = replace(batch, targets=batch.targets[1:2], target_mask=batch.target_mask[1:2])
    lone_losses = alone.losses(lone, "cross_entropy")
    assert torch.equal(lone_losses[0], losses[1])
    assert torch.equal(torch.autograd.grad(lone_losses.sum(), lone)[0][0], gradient[1])


def test_a_view_turns_distances_into_keys():
    scores = torch.arange(15.0).view(1, 1, 1, 3, 5)  # row i, distance index c
    expected = torch.tensor([[row * 5 + 2 - row + key for key in range(3)] for row in range(3)], dtype=torch.float32)
    assert torch.equal(softmax._shifted(scores, 3)[0, 0, 0], expected)
    past = softmax._shifted(scores[..., :3].contiguous(), 3)[0, 0, 0]
    assert torch.equal(past.tril(), expected.tril())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["compiled", "library"])
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_has_the_gradients_of_its_formula(causal, relative, dtype):
    """Of 2 runs, 4 heads and chunks of 2 and 3 rows with 5 and 1 or 3 positions, against row by row and score by score."""
    runs, heads, width, chunks = 2, 4, 6, Chunks((2, 3), (5, 3 if causal else 1))
    generator = torch.Generator().manual_seed(0)
    count, longest = sum(rows * length for rows, length in zip(chunks.rows, chunks.lengths, strict=True)), 5

    def drawn(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()

    parts = [drawn(runs, count, heads * width) for _ in range(3)]
    if relative:
        parts += [drawn(runs, heads, width), drawn(runs, heads, width), drawn(runs, heads, longest if causal else 9, width)]
    masks = None
    if not causal:
        masks = [torch.rand(runs, *shape, generator=generator) < 0.7 for shape in zip(chunks.rows, chunks.lengths, strict=True)]
        for mask in masks:
            mask[..., 0] = True
    where = attention._Rectangles(heads, chunks, chunks, masks)
    found = attention._Attention.apply(where, *parts, *([] if relative else [None] * 3))

    def by_row(values):
        return [row.unflatten(2, (heads, width)) for chunk in chunks.cut(values) for row in chunk.unbind(1)]

    exact = [part.detach().double().requires_grad_() for part in parts]
    expected = []
    for number, (query, key, value) in enumerate(zip(*map(by_row, exact[:3]), strict=True)):
        length = query.shape[1]
        scores = torch.full((runs, heads, length, length), float("-inf"), dtype=torch.float64)
        for here, there in product(range(length), repeat=2):
            asked = query[:, here] + exact[3] if relative else query[:, here]
            if there <= here if causal else True:
                scores[:, :, here, there] = (asked * key[:, there]).sum(-1)
                if relative:
                    near = exact[5][:, :, longest - 1 - (here - there)]
                    scores[:, :, here, there] += ((query[:, here] + exact[4]) * near).sum(-1)
        if not causal:
            allowed = torch.cat([functional.pad(mask, (0, 5 - mask.shape[2])) for mask in masks], 1)[:, number, :length]
            scores = scores.masked_fill(~allowed[:, None, None], float("-inf"))
        expected.append(torch.einsum("rhls,rshe->rlhe", scores.softmax(-1), value).flatten(2))
    expected = torch.cat(expected, 1)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    weight = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    ours = torch.autograd.grad((found * weight.to(dtype)).sum(), parts)
    for our, their in zip(ours, torch.autograd.grad((expected * weight).sum(), exact), strict=True):
        torch.testing.assert_close(our.double(), their, rtol=1e-5, atol=1e-5)


def test_compiled_exponentials_are_exact_to_two_units_in_the_last_place():
    """Of distances from the largest number, over all that float32 holds; NaN and infinity make a row NaN, as in PyTorch."""
    distances = torch.linspace(-86.9, 0, 100_001)
    pairs = torch.stack([torch.zeros_like(distances), distances], 1).view(1, 1, 1, -1, 2)
    found = softmax.shares(pairs.clone(), None, None, False)
    expected = pairs.double().softmax(-1)
    assert ((found - expected).abs() / expected).max() < 2 * 2**-23
    edges = torch.tensor([[0.0, float("-inf")], [0.0, -200.0], [float("nan"), 1.0], [float("inf"), 1.0], [float("-inf")] * 2])
    found = softmax.shares(edges.clone().view(1, 1, 1, -1, 2), None, None, False).view(-1, 2)
    torch.testing.assert_close(found, edges.softmax(-1), equal_nan=True)


@pytest.mark.parametrize("symbols", [65, 700])
def test_compiled_cross_entropy_is_exact_at_large_differences(symbols):
    torch.manual_seed(0)
    logits, targets = 30 * torch.randn(50, symbols), torch.randint(symbols, (50,))
    losses = softmax.cross_entropy(logits.requires_grad_(), targets)
    exact = logits.detach().double().requires_grad_()
    expected = functional.cross_entropy(exact, targets, reduction="none")
    torch.testing.assert_close(losses.double(), expected, rtol=1e-6, atol=1e-6)
    weight = torch.randn(50)
    (ours,), (theirs,) = (
        torch.autograd.grad((found * weight).sum(), given) for found, given in ((losses, logits), (expected, exact))
    )
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-6)


def attention_weights(reference: nn.MultiheadAttention) -> dict[str, torch.Tensor]:
    """One run's weights "a.<part>", taken from PyTorch's attention."""
    weights = {"a.output.weight": reference.out_proj.weight.T, "a.output.bias": reference.out_proj.bias}
    for part, weight, bias in zip(
        ("query", "key", "value"), reference.in_proj_weight.chunk(3), reference.in_proj_bias.chunk(3), strict=True
    ):
        weights |= {f"a.{part}.weight": weight.T, f"a.{part}.bias": bias}
    return weights


def test_attention_without_positions_equals_pytorch():
    torch.manual_seed(0)
    width, heads = 8, 2
    reference = nn.MultiheadAttention(width, heads, batch_first=True)
    states, mask = torch.randn(3, 5, width), torch.tensor([[True] * 5, [True] * 3 + [False] * 2, [True] + [False] * 4])
    expected, _ = reference(states, states, states, key_padding_mask=~mask)
    weights = attention.initialize_attention(np.random.default_rng(0), width, heads, "a", relative=True)
    weights |= attention_weights(reference) | {"a.position": torch.zeros(width, width)}
    stacked = {name: tensor[None] for name, tensor in weights.items()}
    # Two chunks: the third row has its first four positions only.
    read = attention.Encoded.of(states[None], mask[None], Chunks((2, 1), (5, 4)))
    found = attention.attend_own(stacked, "a", read.states, read.chunks, read.masks, heads)
    rows = read.chunks.rectangle(found, 5)[0]
    torch.testing.assert_close(rows[:2], expected[:2], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(rows[2, :4], expected[2, :4], atol=1e-5, rtol=1e-5)


def test_attention_to_the_input_equals_pytorch(problem):
    split = problem("transformer").splits["train"]
    ((_, batch),) = split.evaluation_batches(1, len(split), 12)
    torch.manual_seed(0)
    width, heads = 8, 2
    reference = nn.MultiheadAttention(width, heads, batch_first=True)
    weights = {name: tensor[None] for name, tensor in attention_weights(reference).items()}
    layout, mask = batch.layout, batch.input_mask
    states, encoded = torch.randn(1, len(layout.positions), width), torch.randn(*mask.shape, width)
    read = attention.Encoded.of(encoded, mask, layout.input_chunks(0))
    found = attention.attend_across(weights, "a", states, read, layout, heads, batch.once)
    parts = (layout.chunks(found), layout.chunks(states), layout.rows(encoded), layout.rows(mask))
    for own, queries, attended, valid in zip(*parts, strict=True):
        expected, _ = reference(queries[0], attended[0], attended[0], key_padding_mask=~valid[0])
        torch.testing.assert_close(own[0], expected, atol=1e-5, rtol=1e-4)


def test_relative_scores_equal_the_papers_formula():
    torch.manual_seed(0)
    length, width = 4, 6
    weights = attention.initialize_attention(np.random.default_rng(1), width, 1, "a", relative=True)
    weights |= {"a.content_bias": torch.randn(1, width), "a.position_bias": torch.randn(1, width)}
    queries, keys = torch.randn(length, width), torch.randn(length, width)

    def position(distance):
        frequency = torch.exp(torch.arange(0, width, 2.0) * (-math.log(10000) / width))
        return torch.cat([(distance * frequency).sin(), (distance * frequency).cos()]) @ weights["a.position"]

    scores = torch.stack(
        [
            torch.stack(
                [
                    (queries[i] + weights["a.content_bias"][0]) @ keys[j]
                    + (queries[i] + weights["a.position_bias"][0]) @ position(i - j)
                    for j in range(length)
                ]
            )
            for i in range(length)
        ]
    )
    # With the identity as values and as the output map, attention returns its weights.
    stacked = {name: tensor[None] for name, tensor in (weights | {"a.output.weight": torch.eye(width)}).items()}
    parts, chunks = tuple(part[None] for part in (queries, keys, torch.eye(length, width))), Chunks((1,), (length,))
    masks = [torch.ones(1, 1, length, dtype=torch.bool)]
    found = attention._attend(stacked, "a", *parts, attention._Rectangles(1, chunks, chunks, masks))
    torch.testing.assert_close(found[0, :, :length], (scores / math.sqrt(width)).softmax(-1), atol=1e-5, rtol=1e-4)
    # A decoder attends only to itself and earlier positions.
    found = attention._attend(stacked, "a", *parts, attention._Rectangles(1, chunks, chunks, None))
    scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
    torch.testing.assert_close(found[0, :, :length], (scores / math.sqrt(width)).softmax(-1), atol=1e-5, rtol=1e-4)


def test_the_transformer_does_not_see_the_future_or_padding(problem):
    case = problem("transformer")
    split = case.splits["train"]
    _, batch = split.evaluation_batches(1, 32, 32)[0]
    weights = {name: tensor[None] for name, tensor in initial_weights(case, 0).items()}
    logits = case.model.forward(case.model_parameters, weights, batch, silent_tap)
    step = batch.layout.positions[:, 1]
    changed = batch.previous.clone()
    changed[:, step >= 2] = 3
    inputs = torch.where(batch.input_mask, batch.inputs, 5)
    altered = replace(batch, previous=changed, inputs=inputs)
    again = case.model.forward(case.model_parameters, weights, altered, silent_tap)
    torch.testing.assert_close(again[:, step < 2], logits[:, step < 2], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(again[:, step >= 2], logits[:, step >= 2], atol=1e-3)


def test_the_syntax_of_a_single_word_does_not_depend_on_the_word(problem):
    case = problem("syntactic_attention")
    split = case.splits["train"]
    rows = torch.tensor([[row for row, length in enumerate(split.input_lengths.tolist()) if length == 2][:16]])
    layout = Layout(split.lengths[rows[0]].tolist(), [2] * 16)
    batch = split.batch(rows, layout)
    weights = {name: tensor[None] for name, tensor in initial_weights(case, 0).items()}

    def run(word, name, entry):
        """Logits for a command of one word, with one of its embeddings set to `entry`."""
        inputs = batch.inputs.clone()
        inputs[..., 0] = word
        changed = weights[name].clone()
        changed[:, word] = entry
        return case.model.forward(case.model_parameters, weights | {name: changed}, replace(batch, inputs=inputs), silent_tap)

    jump, walk = (split.source.words.index(word) for word in ("jump", "walk"))
    own = weights["semantic_embedding"][:, jump]
    # If one word has the other's meaning, the network cannot distinguish them, whatever their syntactic embeddings.
    assert torch.equal(run(walk, "semantic_embedding", own), run(jump, "semantic_embedding", own))
    assert torch.equal(run(walk, "syntactic_embedding", 7.0), run(walk, "syntactic_embedding", -7.0))
    assert not torch.allclose(run(walk, "semantic_embedding", own), run(walk, "semantic_embedding", -own), atol=1e-3)


def _episodes(problem, sentences):
    """Logits (examples, positions, symbols) of an untrained meta-learner for episodes of equal length with the same output."""
    case = problem("meta_sequence_to_sequence")
    split = case.splits["train"]
    outputs = ["I_WALK I_WALK"] * len(sentences)
    asked = SequenceSplit(sentences, outputs, split.source, split.target, "cpu")
    rows = torch.argsort(torch.from_numpy(asked.order))[None]
    layout = Layout([3] * len(sentences), [int(asked.input_lengths.max())] * len(sentences))
    weights = {name: tensor[None] for name, tensor in initial_weights(case, 0).items()}
    weights |= {name: tensor[None] for name, tensor in buffers(case, 0).items()}
    logits = case.model.forward(case.model_parameters, weights, asked.batch(rows, layout), silent_tap)
    return torch.cat([chunk[0] for chunk in layout.chunks(logits)])[:, :3]


def test_a_meta_learner_finds_pairs_at_every_position(problem):
    pairs = ["jump means I_RUN", "walk means I_JUMP", "run means I_LOOK", "look means I_WALK"]
    others = ["jump means I_JUMP", "walk means I_RUN", "run means I_LOOK", "look means I_WALK"]
    supports = [pairs, pairs[::-1], pairs[2:] + pairs[:2], others] + [pairs] * 12
    logits = _episodes(problem, [f"{' , '.join(support)} do walk twice" for support in supports])
    torch.testing.assert_close(logits[1:3], logits[:1].expand(2, -1, -1), atol=1e-6, rtol=1e-5)
    assert not torch.allclose(logits[3], logits[0], atol=1e-4)


def test_the_representations_of_a_meta_learner_cover_only_the_command(problem):
    """They are not states of all input words, so `consistency` must not use them. A single word is a command."""
    case = problem("meta_sequence_to_sequence")
    weights = {name: tensor[None] for name, tensor in initial_weights(case, 0).items()}
    weights |= {name: tensor[None] for name, tensor in buffers(case, 0).items()}
    words = ["walk", "jump", "twice"]
    (vectors,) = representations.word_vectors(case, weights, words).values()
    rows = [case.splits["train"].source.words.index(word) for word in words]
    np.testing.assert_array_equal(vectors[0], weights["input_embedding"][0, rows].double().numpy())
    shown, needed = (declarations(name) for name in ("models.meta_sequence_to_sequence", "regularizers.consistency"))
    assert not set(shown["REPRESENTATIONS"]) & set(needed["REPRESENTATIONS"])


def test_the_command_of_an_episode_is_what_follows_do(problem):
    split = problem("meta_sequence_to_sequence").splits["train"]
    _, batch = split.evaluation_batches(1, 32, 32)[0]
    command = meta_sequence_to_sequence.command_of(batch, batch.inputs == split.source.words.index("do"))
    for whole, words, mask, length in zip(
        batch.inputs[0], command.inputs[0], command.input_mask[0], command.input_lengths[0], strict=True
    ):
        assert split.source.decode(words.tolist()) == split.source.decode(whole.tolist()).split(" do ")[1]
        assert mask.sum() == length == split.source.decode(words.tolist()).count(" ") + 2  # including the end symbol


def test_a_meta_learner_needs_episodes(problem):
    case = problem("lstm_attention")
    with pytest.raises(ValueError, match="episodes"):
        meta_sequence_to_sequence.buffers({}, case.about, 0)


def stepped(gates, cell):
    """Hidden and cell state after a step of an LSTM. Gates: input, forget, output, candidate."""
    into, keep, out, candidate = gates.chunk(4)
    cell = keep.sigmoid() * cell + into.sigmoid() * candidate.tanh()
    return out.sigmoid() * cell.tanh(), cell


def states_of(weights, prefix, words, hidden=None):
    """An LSTM step by step: words (S, D) -> states (S, H)."""
    width = weights[f"{prefix}.bias"].shape[0] // 4
    recurrent = weights.get(f"{prefix}.recurrent", torch.zeros(width, 4 * width))
    cell = torch.zeros(width)
    hidden, states = cell if hidden is None else hidden, []
    for word in words:
        read = word @ weights[f"{prefix}.input"] if f"{prefix}.input" in weights else 0
        hidden, cell = stepped(read + hidden @ recurrent + weights[f"{prefix}.bias"], cell)
        states.append(hidden)
    return torch.stack(states)


def both_ways(weights, prefix, words):
    """The concatenated states of both directions."""
    ahead, back = states_of(weights, f"{prefix}.forward", words), states_of(weights, f"{prefix}.backward", words.flip(0)).flip(0)
    return torch.cat([ahead, back], 1)


def ends_of(states):
    """The last states of both directions."""
    width = states.shape[1] // 2
    return torch.cat([states[-1, :width], states[0, width:]])


def linear(weights, name, values):
    return values @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def primitive_attention_by_hand(w, words, previous, names):
    states = both_ways(w, "encoder", w["function_embedding"][words])
    hidden = states_of(w, "decoder", previous, ends_of(states))
    return linear(w, "output", (hidden @ states.T).softmax(1) @ w["primitive_embedding"][words])


def lstm_attention_by_hand(w, words, previous, names):
    states = both_ways(w, "encoder", w["input_embedding"][words])
    hidden = states_of(w, "decoder", w["output_embedding"][previous], torch.cat([states[0], states[-1]]))
    context = (hidden @ linear(w, "key", states).T).softmax(1) @ states
    return linear(w, "output", torch.cat([hidden, context], 1))


def lstm_input_feeding_by_hand(w, words, previous, names):
    states = both_ways(w, "encoder", w["input_embedding"][words])
    annotations, outputs = linear(w, "annotation", states), []
    hidden = sum(ends_of(states).chunk(2))
    cell = decision = torch.zeros_like(hidden)
    for symbol in previous:
        gates = torch.cat([w["output_embedding"][symbol], decision]) @ w["decoder.input"] + hidden @ w["decoder.recurrent"]
        hidden, cell = stepped(gates + w["decoder.bias"], cell)
        context = (linear(w, "key", annotations) @ hidden).softmax(0) @ annotations
        decision = linear(w, "combined", torch.cat([hidden, context]))
        written = linear(w, "output", decision)
        # The last column is the choice to copy. No word here is a symbol, so copying one writes padding.
        outputs.append(torch.cat([written[-1:], written[1:-1]]).log_softmax(0))
    return torch.stack(outputs)


def pointer_generator_by_hand(w, words, previous, names):
    states, outputs = both_ways(w, "encoder", w["input_embedding"][words]), []
    hidden = ends_of(states)
    cell = decision = torch.zeros_like(hidden)
    for symbol in previous:
        gates = torch.cat([w["output_embedding"][symbol], decision]) @ w["decoder.input"] + hidden @ w["decoder.recurrent"]
        hidden, cell = stepped(gates + w["decoder.bias"], cell)
        look = ((states @ w["key.weight"] + linear(w, "query", hidden)).tanh() @ w["score.weight"]).softmax(0).squeeze(1)
        decision = linear(w, "combined", torch.cat([look @ states, hidden]))
        share = linear(w, "copied", decision).sigmoid()
        # No word here is a symbol, so copying one writes padding.
        padding = torch.eye(w["output.bias"].shape[0])[0]
        outputs.append(((1 - share) * linear(w, "output", decision).softmax(0) + share * padding).log())
    return torch.stack(outputs)


def syntactic_attention_by_hand(w, words, previous, names):
    around = both_ways(w, "surroundings", w["syntactic_embedding"][words])
    half, none = around.shape[1] // 2, torch.zeros(1, around.shape[1] // 2)
    around = torch.cat([torch.cat([none, around[:-1, :half]]), torch.cat([around[1:, half:], none])], 1)
    around[-1] = w["end"]
    syntax = both_ways(w, "encoder", around)
    query, outputs = linear(w, "start", ends_of(syntax)).relu(), []
    hidden = cell = torch.zeros_like(query)
    for _ in previous:
        look = (syntax @ query).softmax(0)
        gates = look @ syntax @ w["decoder.input"] + hidden @ w["decoder.recurrent"] + w["decoder.bias"]
        hidden, cell = stepped(gates, cell)
        query = hidden
        outputs.append(linear(w, "output", look @ w["semantic_embedding"][words]))
    return torch.stack(outputs)


def meta_sequence_to_sequence_by_hand(w, words, previous, names):
    text = [names[word] for word in words]
    pairs = [(words[place - 1], words[place + 1]) for place, word in enumerate(text) if word == "means"]
    command = words[text.index("do") + 1 :]
    keys = torch.cat([both_ways(w, "encoder", w["input_embedding"][[word]]) for word, _ in pairs])
    values = torch.cat([both_ways(w, "meaning", w["meaning_embedding"][[symbol]]) for _, symbol in pairs])
    states = both_ways(w, "encoder", w["input_embedding"][command])
    found = (states @ keys.T / math.sqrt(states.shape[1])).softmax(1) @ values
    context = linear(w, "context", torch.cat([states, found], 1)).tanh()
    hidden = states_of(w, "decoder", w["output_embedding"][previous], context[-1])
    decided = linear(w, "decided", torch.cat([hidden, (hidden @ context.T).softmax(1) @ context], 1)).tanh()
    return linear(w, "output", decided)


def cgps_by_hand(w, words, previous, names):
    states = both_ways(w, "encoder", w["function_embedding"][words])
    hidden, outputs = ends_of(states), []
    cell = attended = torch.zeros_like(hidden)
    for _ in previous:
        gates = attended @ w["decoder.input"] + hidden @ w["decoder.recurrent"] + w["decoder.bias"]
        hidden, cell = stepped(gates, cell)
        context = (states @ w["key.weight"] @ hidden).softmax(0) @ states
        attended = torch.cat([hidden, context]) @ w["attended.weight"]
        shares = linear(w, "position", attended)[: len(words)].softmax(0)  # only over the positions of the input
        outputs.append(linear(w, "output", shares @ w["primitive_embedding"][words]))
    return torch.stack(outputs)


REFERENCES = [primitive_attention_by_hand, lstm_attention_by_hand, lstm_input_feeding_by_hand, cgps_by_hand]
REFERENCES += [pointer_generator_by_hand, syntactic_attention_by_hand, meta_sequence_to_sequence_by_hand]


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: reference.__name__)
def test_recurrent_models_equal_their_equations(problem, reference):
    """The network, computed example by example and step by step, equals a pack's rows of different lengths."""
    case = problem(reference.__name__.removesuffix("_by_hand"))
    _, batch = case.splits["train"].evaluation_batches(1, 16, 16)[0]
    weights = {name: tensor.double() for name, tensor in initial_weights(case, 0).items()}
    packed_weights = {name: tensor.double()[None] for name, tensor in (weights | buffers(case, 0)).items()}
    logits = case.model.forward(case.model_parameters, packed_weights, batch, silent_tap)
    ours, previous, mask = (
        [row for chunk in batch.layout.chunks(values) for row in chunk[0]]
        for values in (logits, batch.previous, batch.target_mask)
    )
    torch.set_default_dtype(torch.float64)
    try:
        for row in (0, 7, 15):
            words = batch.inputs[0, row, : batch.input_lengths[0, row]].tolist()
            length = int(mask[row].sum())
            expected = reference(weights, words, previous[row][:length].tolist(), case.about["source_words"])
            torch.testing.assert_close(ours[row][:length], expected, atol=1e-6, rtol=1e-6)
    finally:
        torch.set_default_dtype(torch.float32)


def test_cgps_refuses_inputs_longer_than_its_positions(problem):
    case = problem("cgps")
    _, batch = case.splits["train"].evaluation_batches(1, 16, 16)[0]
    weights = {name: tensor[None] for name, tensor in initial_weights(case, 0).items()}
    with pytest.raises(ValueError, match="positions: 4 is too few: inputs have up to 10 with their end"):
        case.model.forward(case.model_parameters | {"positions": 4}, weights, batch, silent_tap)


@pytest.mark.parametrize("positions", ["relative", "absolute"])
def test_the_transformer_equals_pytorch_s_layers(problem, positions):
    """Without relative positions; with absolute ones, if it has those."""
    case = problem("transformer")
    options = case.model_parameters | {"positions": positions}
    assert (positions == "relative") == (options == case.model_parameters)
    case = replace(case, model_parameters=options)
    width, heads = options["width"], options["heads"]
    torch.manual_seed(0)
    weights = {name: tensor + 0.1 * torch.randn_like(tensor) for name, tensor in initial_weights(case, 0).items()}
    silent = (".position", ".position_bias", ".content_bias")
    weights = {name: torch.zeros_like(tensor) if name.endswith(silent) else tensor for name, tensor in weights.items()}

    def layer(kind, name, blocks):
        made = kind(width, heads, options["feedforward_factor"] * width, dropout=0.0, batch_first=True)
        copied = {}
        for index, (block, attribute) in enumerate(blocks.items(), 1):
            parts = [f"{name}.{block}.{part}" for part in ("query", "key", "value")]
            copied[f"{attribute}.in_proj_weight"] = torch.cat([weights[f"{part}.weight"].T for part in parts])
            copied[f"{attribute}.in_proj_bias"] = torch.cat([weights[f"{part}.bias"] for part in parts])
            copied[f"{attribute}.out_proj.weight"] = weights[f"{name}.{block}.output.weight"].T
            copied[f"{attribute}.out_proj.bias"] = weights[f"{name}.{block}.output.bias"]
            copied |= {f"norm{index}.weight": weights[f"{name}.{block}.norm.scale"]}
            copied |= {f"norm{index}.bias": weights[f"{name}.{block}.norm.shift"]}
        last = len(blocks) + 1
        for part, own in (("linear1", "hidden"), ("linear2", "output")):
            copied[f"{part}.weight"] = weights[f"{name}.feedforward.{own}.weight"].T
            copied[f"{part}.bias"] = weights[f"{name}.feedforward.{own}.bias"]
        copied |= {f"norm{last}.weight": weights[f"{name}.feedforward.norm.scale"]}
        copied |= {f"norm{last}.bias": weights[f"{name}.feedforward.norm.shift"]}
        made.load_state_dict(copied)
        return made

    encoder = [
        layer(nn.TransformerEncoderLayer, f"encoder.{n}", {"inputs": "self_attn"}) for n in range(options["encoder_layers"])
    ]
    places = torch.arange(100.0)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
    table = torch.cat([places.sin(), places.cos()], 1) / math.sqrt(width) * (positions == "absolute")
    blocks = {"past": "self_attn", "across": "multihead_attn"}
    decoder = [layer(nn.TransformerDecoderLayer, f"decoder.{n}", blocks) for n in range(options["decoder_layers"])]
    _, batch = case.splits["train"].evaluation_batches(1, 16, 16)[0]
    logits = case.model.forward(options, {name: tensor[None] for name, tensor in weights.items()}, batch, silent_tap)
    ours, previous, mask = (
        [row for chunk in batch.layout.chunks(values) for row in chunk[0]]
        for values in (logits, batch.previous, batch.target_mask)
    )
    for row in (0, 7, 15):
        words = weights["input_embedding"][batch.inputs[0, row, : batch.input_lengths[0, row]]]
        states = torch.cat([weights["start"][None], words])[None] + table[: len(words) + 1]
        for own in encoder:
            states = own(states)
        length = int(mask[row].sum())
        outputs = weights["output_embedding"][previous[row][:length]][None] + table[:length]
        for own in decoder:
            outputs = own(outputs, states, tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1))
        expected = outputs[0] @ weights["output_embedding"].T + weights["output.bias"]
        torch.testing.assert_close(ours[row][:length], expected.detach(), atol=1e-4, rtol=1e-4)


def test_dropout_keeps_the_mean_in_training_and_everything_in_evaluation():
    generator = torch.Generator().manual_seed(0)
    tap = Tap(None, None, lambda shape: torch.randn(2, *shape, generator=generator))
    values = torch.ones(2, 100, 200)
    dropped = dropout(tap, values, 0.3)
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert (dropped == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)
    assert torch.equal(dropout(silent_tap, values, 0.3), values)


def test_contrast_of_states_equals_the_hand_computed_value():
    # Two states of word 1 have the same direction, one of word 2 has the opposite one, and one of padding must not count.
    states = torch.tensor([[[1.0, 0.0], [2.0, 0.0], [-3.0, 0.0], [7.0, 7.0]]])
    words, valid = torch.tensor([[1, 1, 2, 1]]), torch.tensor([[True, True, True, False]])
    # Each state of word 1 sees a positive with similarity 1 and a negative with -1; word 2 has no positive.
    expected = math.log(1 + math.exp(-2 / 0.5))
    assert consistency.contrast(states, words, valid, 0.5, 16).tolist() == pytest.approx([expected], rel=1e-4)


def test_contrast_is_the_mean_over_pairs():
    torch.manual_seed(0)
    states, words = torch.randn(1, 7, 5), torch.tensor([[3, 1, 3, 2, 3, 1, 3]])
    valid = torch.tensor([[True] * 6 + [False]])
    alike = torch.nn.functional.cosine_similarity(states[0].unsqueeze(0), states[0].unsqueeze(1), dim=-1) / 0.2
    terms = []
    for one in (0, 1, 2, 4, 5):  # valid states whose word has another state
        others = [other for other in range(6) if other != one]
        same = [other for other in others if words[0, other] == words[0, one]]
        terms.append(-sum((alike[one, other] - alike[one, others].logsumexp(0)).item() for other in same) / len(same))
    assert consistency.contrast(states, words, valid, 0.2, 16).tolist() == pytest.approx([sum(terms) / len(terms)], rel=1e-5)


def test_the_penalty_of_consistency_leaves_out_only_padding(scan_splits):
    torch.manual_seed(0)
    split = scan_splits["train"]
    batch = split.batch(torch.from_numpy(split.draw(1, range(2), 32)), split.training_layout(32))
    assert len(batch.layout.reading.positions) < batch.inputs[0].numel()  # otherwise the test would leave out no padding
    first, second = (torch.randn(*batch.inputs.shape, 8) for _ in range(2))
    options = {"alpha": 1.0, "beta": 0.0, "temperature": 0.1}
    outputs = torch.zeros(2, len(batch.layout.positions), 4)
    shown = [Representation("encoder_states", second, batch.input_mask)]
    step = Step(options, batch, torch.ones(2), None, lambda other: (outputs, shown), consistency.prepare({}, split), outputs)
    step.representations.append(Representation("encoder_states", first, batch.input_mask))
    everything = (torch.cat([values.flatten(1, 2) for values in both], 1) for both in ((first, second), [batch.inputs] * 2))
    valid = batch.input_mask.flatten(1, 2).repeat(1, 2)
    # Multiplied by the number of symbols per example, because the task's loss is their sum.
    symbols = batch.target_mask.sum(1) / 32
    torch.testing.assert_close(consistency.penalty(step), symbols * consistency.contrast(*everything, valid, 0.1, step.prepared))


def test_the_penalty_of_consistency_is_the_divergence_of_two_passes_at_every_target_position(scan_splits):
    split = scan_splits["train"]
    batch = split.batch(torch.from_numpy(split.draw(1, range(2), 32)), split.training_layout(32))
    shown = [Representation("encoder_states", torch.ones(*batch.inputs.shape, 8), batch.input_mask)]
    ours, theirs = (torch.tensor(p).log() for p in ([0.5, 0.5], [0.9, 0.1]))
    # The two passes differ at every second step of a target, and at padding, which must not count.
    differ = (batch.layout.positions[:, 1] % 2 == 0) | ~batch.target_mask
    first = ours.expand(*differ.shape, 2)
    second = torch.where(differ.unsqueeze(-1), theirs, ours)
    options = {"alpha": 0.0, "beta": 3.0, "temperature": 0.1}
    step = Step(options, batch, torch.ones(2), None, lambda other: (second, shown), consistency.prepare({}, split), first, shown)
    # Both differ from their mean, (0.7, 0.3).
    apart = (0.5 * math.log(0.5 / 0.7) + 0.5 * math.log(0.5 / 0.3) + 0.9 * math.log(0.9 / 0.7) + 0.1 * math.log(0.1 / 0.3)) / 2
    assert batch.target_mask.logical_not().any()
    torch.testing.assert_close(consistency.penalty(step), 3 * apart * (differ & batch.target_mask).sum(1) / 32)


def test_divergence_equals_the_hand_computed_value():
    left, right = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.9, 0.1]).log()
    middle = [0.7, 0.3]
    expected = sum(p * math.log(p / m) / 2 for row in ([0.5, 0.5], [0.9, 0.1]) for p, m in zip(row, middle, strict=True))
    assert divergence(left, right).item() == pytest.approx(expected, rel=1e-5)
    assert divergence(left, left).item() == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize(
    ("prediction", "kind"),
    [
        ("a b c", "right"),
        ("", "empty"),
        ("a b", "cut short"),
        ("a b c d", "goes on"),
        ("a a a a a", "repeats"),
        ("a d c d c d c", "repeats"),
        ("b a c", "other order"),
        ("a a a", "wrong symbols"),
        ("a b d", "wrong symbols"),
        ("b", "wrong length"),
    ],
)
def test_mistakes_are_classified(prediction, kind):
    assert error_types.error_type("a b c", prediction) == kind
    assert kind in error_types.ERROR_TYPES


class Chain:
    """A "model" whose next symbol depends only on the previous one, by a table of probabilities."""

    def __init__(self, table: torch.Tensor) -> None:
        self.table = table

    def forward(self, parameters, weights, batch, tap):
        return self.table.log()[batch.previous]


def chain_problem(probabilities: dict[str, dict[str, float]]):
    vocabulary = Vocabulary.of(["a b c"])
    table = torch.full((len(vocabulary), len(vocabulary)), 1e-9)
    for last, following in probabilities.items():
        for symbol, probability in following.items():
            table[vocabulary.words.index(last), vocabulary.words.index(symbol)] = probability
    split = SequenceSplit(["a", "b"], ["a b c", "c"], vocabulary, vocabulary, "cpu")
    model = replace(plugins.load(Model, "models.lstm_attention"), forward=Chain(table).forward)
    case = Problem("chain", {"kind": "sequence"}, {"train": split, "test": split}, "chain", model, {}, None, {}, {}, "cpu")
    return case, {"none": torch.zeros(2, 1)}


def test_beam_search_finds_what_greedy_search_misses():
    # Greedy search takes a (0.6) and then has no good continuation; b <end> has the largest probability.
    case, weights = chain_problem(
        {"<start>": {"a": 0.6, "b": 0.4}, "a": {"a": 0.34, "c": 0.33, "<end>": 0.33}, "b": {"<end>": 1.0}, "c": {"<end>": 1.0}}
    )
    greedy = decoding.predictions(case, weights, "test", None, beam=1)
    beam = decoding.predictions(case, weights, "test", None, beam=3)
    assert [row[2] for row in beam[0]] == ["b", "b"]
    # The sequence never ends, and there is room for 4 + 0 + 5 symbols.
    assert [row[2] for row in greedy[1]] == [" ".join("a" * 9)] * 2
    assert [row[:2] for row in beam[0]] == [("a", "a b c"), ("b", "c")]


def test_beam_search_ranks_by_log_probability_divided_by_length():
    # Probabilities: c .3, a b .2912, a b c .2688, a .14. Log probability / length: a b c -.328, a b -.411, c -.602.
    case, weights = chain_problem(
        {
            "<start>": {"a": 0.7, "c": 0.3},
            "a": {"b": 0.8, "<end>": 0.2},
            "b": {"<end>": 0.52, "c": 0.48},
            "c": {"<end>": 1.0},
        }
    )
    found = decoding.predictions(case, weights, "test", None, beam=2)
    assert [row[2] for row in found[0]] == ["a b c", "a b c"]


@pytest.mark.parametrize("beam", [1, 2])
def test_sentences_are_decoded_with_calibrated_weights(beam):
    """Batch normalization of a sequence model must use the same statistics as in the accuracy."""
    case, weights = chain_problem({"<start>": {"c": 1.0}, "c": {"<end>": 1.0}})
    other, _ = chain_problem({"<start>": {"b": 1.0}, "b": {"<end>": 1.0}})

    def forward(parameters, weights, batch, tap):
        model = other if "mean" in weights else case
        return model.model.forward(parameters, weights, batch, tap)

    calibrated = replace(case.model, forward=forward, calibrate=lambda parameters, weights, batches: {"mean": torch.zeros(2, 1)})
    found = decoding.predictions(replace(case, model=calibrated), weights, "test", None, beam=beam)
    assert [row[2] for row in found[0]] == ["b", "b"]


def test_a_beam_of_one_equals_greedy_decoding(problem):
    """Beam search does not use targets. That greedy decoding knows which answers are right must therefore change nothing."""
    case = problem("lstm_attention", steps=100, record_every=100, learning_rate=0.01)
    states = [fresh_state(case, seed, 0.0) for seed in range(2)]
    train_runs(case, states, metrics.measure)
    weights = weights_of(case, states)
    _, batch = case.splits["train"].evaluation_batches(2, 64, 64)[0]
    greedy = decoding.decode_greedily(case, weights, batch, 40)
    beam = decoding.decode_by_beam(case, weights, batch, 40, 1)
    assert torch.equal(greedy, torch.nn.functional.pad(beam, (0, 40 - beam.shape[2])))
    right = batch.correct(case.model.forward(case.model_parameters, weights, batch, silent_tap))
    assert 0 < right.float().mean() < 1


@pytest.mark.parametrize(
    ("model", "options"),
    [
        *(("transformer", {"positions": positions}) for positions in ("relative", "absolute")),
        ("lstm_attention_copying", {}),
        *(
            (model, {})
            for model in (
                "cgps",
                "lstm_attention",
                "lstm_input_feeding",
                "meta_sequence_to_sequence",
                "pairwise_transformer",
                "pointer_generator",
                "primitive_attention",
                "syntactic_attention",
            )
        ),
    ],
)
def test_decoding_reads_each_word_once_and_continues_as_teacher_forcing_does(monkeypatch, model, options):
    case = small.problem(model)
    case = replace(case, model_parameters=case.model_parameters | options)
    weights = untrained(case, range(2))
    _, batch = case.splits["train"].evaluation_batches(2, 16, 16)[0]
    with torch.no_grad():
        outputs = batch.layout.chunks(case.model.forward(case.model_parameters, weights, batch, silent_tap).log_softmax(-1))
    targets = torch.cat([chunk[..., :5] for chunk in batch.layout.chunks(batch.targets)], 1)
    calls = []
    for module in {transformer, primitive_attention, import_module(case.model.forward.__module__)}:
        if encode := getattr(module, "encode", None):
            monkeypatch.setattr(module, "encode", lambda *given, encode=encode: calls.append(1) or encode(*given))
    decoding_batch, counts = replace(batch, kept={}, past={}), set()
    for step in range(5):
        written = targets[..., :step].clone()
        written[..., : max(step - 1, 0)] = START  # only the last symbol is read
        found = decoding.next_symbols(case, weights, decoding_batch, written)
        torch.testing.assert_close(found, torch.cat([chunk[:, :, step] for chunk in outputs], 1), atol=1e-5, rtol=1e-5)
        counts.add(len(calls))
    assert len(counts) == 1
    assert calls


def test_every_hypothesis_of_a_beam_keeps_its_own_past(problem):
    """Hypotheses are reordered at every step. The network must then know what the hypothesis says that continues."""
    case = problem("transformer", steps=60, record_every=60, learning_rate=0.003)
    states = [fresh_state(case, seed, 0.0) for seed in range(2)]
    train_runs(case, states, metrics.measure)
    weights = weights_of(case, states)

    def forgets(parameters, weights, batch, tap):
        return case.model.forward(parameters, weights, replace(batch, past=None), tap)

    _, batch = case.splits["train"].evaluation_batches(2, 16, 16)[0]
    found = decoding.decode_by_beam(case, weights, batch, 12, 4)
    assert torch.equal(
        found, decoding.decode_by_beam(replace(case, model=replace(case.model, forward=forgets)), weights, batch, 12, 4)
    )
    assert not torch.equal(found[0], found[1])


def test_scores_contain_beam_accuracy_and_bleu():
    case, weights = chain_problem({"<start>": {"c": 1.0}, "c": {"<end>": 1.0}})
    case.about["decoding"] = {"beam": 2, "bleu": True}
    (first, _) = decoding.scores(case, weights)
    assert first["test", "accuracy_beam"] == 0.5
    assert set(first) == {("test", "accuracy_beam"), ("test", "bleu")}
    case.about.pop("decoding")
    assert decoding.scores(case, weights) == [{}, {}]


def test_categories_are_counted_separately_and_by_group():
    right = torch.tensor([[True, False, True, True], [False, False, False, True]])
    categories = np.array(["lexical/a", "lexical/b", "lexical/a", "structural/c"])
    first, second = metrics.by_category(right, categories)
    assert first == {"lexical": 2 / 3, "lexical/a": 1.0, "lexical/b": 0.0, "structural": 1.0, "structural/c": 1.0}
    assert second["lexical"] == 0.0


def test_the_layout_of_equal_lengths_is_row_by_row():
    assert Layout([2] * 32, [1] * 32).positions[:3].tolist() == [[0, 0], [0, 1], [1, 0]]
