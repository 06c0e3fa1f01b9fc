"""Meta sequence-to-sequence learner (Lake, "Compositional generalization through meta sequence-to-sequence learning", NeurIPS
2019): a memory of an episode's support pairs, which every word of the command looks up.

An input says "jump means I_RUN , walk means I_JUMP ... do <command>". Each pair (a word, "means", a word) is kept in a memory:
its key is what the command's encoder, a bidirectional LSTM, makes of its input alone, its value what a second one makes of its
output. The encoder's state at each word of the command, and what it finds in memory, make the context that the decoder's LSTM
attends over. All pairs of our episodes are single words, so either encoder of pairs is one step from zero. Both directions stand
side by side; the original adds them up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from compositional import randomness
from compositional.kinds.sequence import Batch
from compositional.language.vocabulary import PAD
from compositional.layers import Weights
from compositional.layers.functional import embedding, linear, padding_bias, reorder
from compositional.layers.lstm import lstm
from compositional.layers.recurrent import (
    at_last,
    attend,
    cell_step,
    encode,
    initialize_linear,
    initialize_lstm,
    stacked,
)
from compositional.layers.tap import dropout

KIND = "sequence"
REPRESENTATIONS = ("word_embedding", "command_states")  # not of every input word: nothing for `consistency`
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
    """Which input word is "means" (first column) and which "do" (second): (words, 16), the other columns zeros.

    Raises:
        ValueError: the task's inputs are no episodes.
    """
    words = list(task["source_words"])
    if not {_MEANS, _DO} <= set(words):
        raise ValueError(f'meta_sequence_to_sequence: inputs must be episodes, "<word> {_MEANS} <word> , ... {_DO} <command>"')
    marks = torch.zeros(len(words), 16)
    marks[words.index(_MEANS), 0] = marks[words.index(_DO), 1] = 1
    return {"marks": marks}


def command_of(batch: Batch, starts: Tensor) -> Batch:
    """The commands alone: what stands behind the flag in `starts` (R, B, S), moved to the front; without a flag all of it."""
    length = batch.inputs.shape[2]
    skipped = (starts.to(torch.int64).argmax(2) + 1) * starts.any(2)
    place = torch.arange(length, device=starts.device) + skipped.unsqueeze(2)
    kept, lengths = place < batch.input_lengths.unsqueeze(2), batch.input_lengths - skipped
    words = batch.inputs.gather(2, place.clamp(max=length - 1)).masked_fill(~kept, PAD)
    return replace(batch, inputs=words, input_mask=kept, input_lengths=lengths)


def _alone(weights: Weights, prefix: str, words: Tensor) -> Tensor:
    """What both directions of an encoder make of single words: (R, B, S, D) -> (R, B, S, 2 H) side by side."""
    ways = []
    for way in ("forward", "backward"):
        gates = linear(words.flatten(1, 2), weights[f"{prefix}.{way}.input"], weights[f"{prefix}.{way}.bias"])
        ways.append(cell_step(gates, gates.new_zeros(1))[0])
    return torch.cat(ways, 2).unflatten(1, words.shape[1:3])


def forward(parameters: dict, weights: Weights, batch: Batch, tap: Callable) -> Tensor:
    """Logits (R, N, symbols) in chunk order, under teacher forcing with `batch.previous`."""
    layout, rate = batch.layout, parameters["dropout"]
    marks = embedding(batch.inputs, weights["marks"]) > 0
    means, command = marks[..., 0], command_of(batch, marks[..., 1])
    mask = command.input_mask
    words = tap("word_embedding", embedding(command.inputs, weights["input_embedding"]), mask)
    states, _ = encode(weights, dropout(tap, words, rate), command.layout.reading, command.input_lengths, command.input_mask)
    states = tap("command_states", states, mask)
    # A pair stands around its "means"; what is made of all other places is not looked at.
    keys, values = (
        _alone(weights, encoder, embedding(batch.inputs.roll(shift, 2), weights[table]))
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
    hidden = at_last(context, command.input_lengths)
    previous = dropout(tap, embedding(batch.previous[:, layout.to_steps], weights["output_embedding"]), rate)
    decoded = lstm(previous, hidden, torch.zeros_like(hidden), stacked(weights, "decoder"), layout.writing.sizes)
    queries = reorder(decoded, layout.to_chunks, layout.to_steps)
    attended = attend(queries, context, context, mask, layout)
    decided = linear(torch.cat([queries, attended], 2), weights["decided.weight"], weights["decided.bias"]).tanh()
    return linear(decided, weights["output.weight"], weights["output.bias"])
