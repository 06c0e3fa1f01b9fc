"""Meta sequence-to-sequence learner (Lake, "Compositional generalization through meta sequence-to-sequence learning", NeurIPS
2019): each word of the command is looked up in a memory of the episode's study pairs.

An input has the form "jump means I_RUN , walk means I_JUMP ... do <command>". Each pair (a word, "means", a word) is stored in a
memory. Its key is the encoding of its input by the command's encoder, a bidirectional LSTM; its value is the encoding of its
output by a second one. The encoder's state at each word of the command, together with what it retrieves from memory, forms the
context to which the decoder's LSTM attends. All pairs of our episodes are pairs of single words, so encoding them takes a single
step from the zero state. The states of both directions are concatenated; the original adds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from compositional import randomness
from compositional.kinds.sequence import Batch
from compositional.language.vocabulary import PAD
from compositional.layers import Weights
from compositional.layers.functional import embedding, initialize_linear, linear, padding_bias
from compositional.layers.recurrent import (
    at_last,
    attend,
    cell_step,
    decode,
    encode,
    initialize_lstm,
)
from compositional.layers.tap import dropout

KIND = "sequence"
REPRESENTATIONS = ("word_embedding", "command_states")  # they do not cover every input word, so `consistency` does not apply
PARAMETERS = {
    "width": {
        "type": "integer",
        "minimum": 8,
        "multipleOf": 8,
        "default": 200,
        "description": "width of embeddings and of the decoder; half as many encoder units per direction",
    },
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.5,
        "description": "share of the units of embeddings that is dropped in training",
    },
}
_MEANS, _DO = "means", "do"


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run."""
    width, words, actions = parameters["width"], len(task["source_words"]), len(task["target_words"])
    weights = {
        "input_embedding": randomness.uniform_tensor(source, (words, width), -1, 1),
        "meaning_embedding": randomness.uniform_tensor(source, (words, width), -1, 1),
        "output_embedding": randomness.uniform_tensor(source, (actions, width), -1, 1),
    }
    for direction in ("forward", "backward"):
        weights |= initialize_lstm(source, width, width // 2, f"encoder.{direction}")
        weights |= initialize_lstm(source, width, width // 2, f"meaning.{direction}")
        del weights[f"meaning.{direction}.recurrent"]  # a single step reads no state
    weights |= initialize_lstm(source, width, width, "decoder")
    weights |= initialize_linear(source, 2 * width, width, "context")
    weights |= initialize_linear(source, 2 * width, width, "decided")
    return weights | initialize_linear(source, width, actions, "output")


def buffers(parameters: dict, task: dict, seed: int) -> Weights:
    """Which input word is "means" (first column) and which is "do" (second): (words, 16); the other columns are zeros.

    Raises:
        ValueError: the task's inputs are not episodes.
    """
    words = list(task["source_words"])
    if not {_MEANS, _DO} <= set(words):
        raise ValueError(f'meta_sequence_to_sequence: inputs must be episodes, "<word> {_MEANS} <word> , ... {_DO} <command>"')
    marks = torch.zeros(len(words), 16)
    marks[words.index(_MEANS), 0] = marks[words.index(_DO), 1] = 1
    return {"marks": marks}


def command_of(batch: Batch, starts: Tensor) -> Batch:
    """The commands alone: the words after the flag in `starts` (R, B, S), moved to the front; all words if there is no flag."""
    length = batch.inputs.shape[2]
    skipped = (starts.to(torch.int64).argmax(2) + 1) * starts.any(2)
    place = torch.arange(length, device=starts.device) + skipped.unsqueeze(2)
    kept, lengths = place < batch.input_lengths.unsqueeze(2), batch.input_lengths - skipped
    words = batch.inputs.gather(2, place.clamp(max=length - 1)).masked_fill(~kept, PAD)
    return replace(batch, inputs=words, input_mask=kept, input_lengths=lengths)


def _alone(weights: Weights, prefix: str, table: Tensor, words: Tensor) -> Tensor:
    """Encodings of single words by both directions, concatenated: table (R, V, D), words (R, B, S) -> (R, B, S, 2 H).

    They are computed once per word of the vocabulary, because there are fewer words than positions.
    """
    every, ways = functional.pad(table, (0, 0, 0, -table.shape[1] % 16)), []  # so that every run's rows are aligned
    for way in ("forward", "backward"):
        gates = linear(every, weights[f"{prefix}.{way}.input"], weights[f"{prefix}.{way}.bias"])
        ways.append(cell_step(gates, gates.new_zeros(1))[0])
    return embedding(words, torch.cat(ways, 2))


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Logits (R, N, symbols) in chunk order, under teacher forcing with `batch.previous`."""
    batch, rate = batch.last(), parameters["dropout"]
    layout = batch.layout
    context, hidden, mask = batch.once("encoded", lambda: _encoded(weights, batch, tap, rate))
    previous = dropout(tap, embedding(batch.previous[:, layout.to_steps], weights["output_embedding"]), rate)
    queries = decode(weights, previous, hidden, layout, batch.past)
    attended = attend(queries, context, context, mask, layout)
    decided = linear(torch.cat([queries, attended], 2), weights["decided.weight"], weights["decided.bias"]).tanh()
    return linear(decided, weights["output.weight"], weights["output.bias"])


def _encoded(weights: Weights, batch: Batch, tap: Callable, rate: float) -> tuple[Tensor, Tensor, Tensor]:
    """The context (R, B, S, H) of the command's words, that of the last one, (R, B, H), and the words' mask (R, B, S)."""
    marks = embedding(batch.inputs, weights["marks"]) > 0
    means, command = marks[..., 0], command_of(batch, marks[..., 1])
    mask = command.input_mask
    words = tap("word_embedding", embedding(command.inputs, weights["input_embedding"]), mask)
    states, _ = encode(weights, dropout(tap, words, rate), command.layout.reading, command.input_lengths, command.input_mask)
    states = tap("command_states", states, mask)
    # The words of a pair are before and after "means". Keys and values at all other positions are masked.
    keys, values = (
        _alone(weights, encoder, weights[table], batch.inputs.roll(shift, 2))
        for encoder, shift, table in (("encoder", 1, "input_embedding"), ("meaning", -1, "meaning_embedding"))
    )
    scores = torch.baddbmm(
        padding_bias(means, states.dtype).unsqueeze(2).flatten(0, 1),
        states.flatten(0, 1),
        keys.flatten(0, 1).transpose(1, 2),
        alpha=1 / math.sqrt(states.shape[3]),
    )
    found = torch.bmm(scores.softmax(2), values.flatten(0, 1)).view(states.shape)
    context = linear(torch.cat([states, found], 3), weights["context.weight"], weights["context.bias"]).tanh()
    return context, at_last(context, command.input_lengths), mask
