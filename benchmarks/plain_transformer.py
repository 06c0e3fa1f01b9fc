"""Transformers as a careful user writes them, in PyTorch's own layers, one run, padded batches: models.transformer and
models.pairwise_transformer.

As benchmarks/plain_sequences.py. `nn.Transformer` has no relative positions; what it takes, with absolute ones in their place, is
measured by benchmarks/packed_training.py.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
from plain_sequences import Weights, dense, known, table
from torch import Tensor, nn
from torch.nn import functional

from compositional.models import pairwise_transformer
from compositional.training.problem import Problem


def _norm(weights: Weights, name: str) -> nn.LayerNorm:
    layer = nn.LayerNorm(weights[f"{name}.scale"].shape[0])
    layer.weight.data, layer.bias.data = weights[f"{name}.scale"].clone(), weights[f"{name}.shift"].clone()
    return layer


class Attention(nn.Module):
    """Attention of several heads; with relative positions (Dai et al. 2019) where the weights have them."""

    def __init__(self, weights: Weights, name: str, heads: int) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (
            dense(weights, f"{name}.{part}") for part in ("query", "key", "value", "output")
        )
        self.heads = heads
        if f"{name}.position" in weights:
            self.position = nn.Parameter(weights[f"{name}.position"].clone())
            self.content_bias, self.position_bias = (
                nn.Parameter(weights[f"{name}.{part}_bias"].clone()) for part in ("content", "position")
            )

    def _by_distance(self, queries: Tensor) -> Tensor:
        """Scores of queries (B, heads, L, E) by the distance to each key, (B, heads, L, L)."""
        length, width = queries.shape[2], self.heads * queries.shape[3]
        distance = torch.arange(length - 1, -length, -1.0, device=queries.device).unsqueeze(1)
        frequency = torch.exp(torch.arange(0, width, 2.0, device=queries.device) * (-math.log(10000) / width))
        waves = torch.cat([(distance * frequency).sin(), (distance * frequency).cos()], 1)
        distances = (waves @ self.position).view(2 * length - 1, self.heads, -1)
        scores = torch.einsum("bhle,rhe->bhlr", queries + self.position_bias.unsqueeze(1), distances)
        flat = functional.pad(scores, (0, 1)).flatten(-2)
        return flat[..., length - 1 : -1].unflatten(-1, (length, 2 * length - 1))[..., :length]

    def forward(self, states: Tensor, attended: Tensor, allowed: Tensor) -> Tensor:
        """States (B, L, D) over attended (B, S, D), where `allowed` (B or 1, 1, L or 1, S) holds."""
        queries, keys, values = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query(states), self.key(attended), self.value(attended))
        )
        if not hasattr(self, "position"):
            mixed = functional.scaled_dot_product_attention(queries, keys, values, allowed)
        else:
            scores = (queries + self.content_bias.unsqueeze(1)) @ keys.transpose(2, 3) + self._by_distance(queries)
            scores = (scores / math.sqrt(queries.shape[3])).masked_fill(~allowed, float("-inf"))
            mixed = scores.softmax(-1) @ values
        return self.output(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """A layer of the encoder, or of the decoder."""

    def __init__(self, weights: Weights, name: str, blocks: tuple[str, ...], case: Problem) -> None:
        super().__init__()
        heads = case.model_parameters["heads"]
        self.blocks = nn.ModuleList(Attention(weights, f"{name}.{block}", heads) for block in blocks)
        self.norms = nn.ModuleList(_norm(weights, f"{name}.{block}.norm") for block in (*blocks, "feedforward"))
        self.hidden, self.output = (dense(weights, f"{name}.feedforward.{part}") for part in ("hidden", "output"))
        self.drop = nn.Dropout(case.model_parameters["dropout"])

    def forward(self, states: Tensor, allowed: Tensor, encoded: Tensor | None = None, seen: Tensor | None = None) -> Tensor:
        states = self.norms[0](states + self.drop(self.blocks[0](states, states, allowed)))
        if encoded is not None:
            states = self.norms[1](states + self.drop(self.blocks[1](states, encoded, seen)))
        inner = self.output(self.drop(self.hidden(states).relu()))
        return self.norms[-1](states + self.drop(inner))


class Transformer(nn.Module):
    """models.transformer."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        self.words, self.symbols = table(weights["input_embedding"]), table(weights["output_embedding"])
        self.start, self.bias = nn.Parameter(weights["start"].clone()), nn.Parameter(weights["output.bias"].clone())
        blocks = {"encoder": ("inputs",), "decoder": ("past", "across")}
        self.encoder, self.decoder = (
            nn.ModuleList(
                Layer(weights, f"{side}.{number}", blocks[side], case)
                for number in range(case.model_parameters[f"{side}_layers"])
            )
            for side in blocks
        )

    def encode(self, inputs: Tensor, filled: Tensor) -> tuple[Tensor, Tensor]:
        """States (B, 1 + S, D), that of the start word first, and their mask, from words and their mask (B, S)."""
        words = torch.cat([self.start.expand(len(inputs), 1, -1), self.words(inputs)], 1)
        seen = functional.pad(filled, (1, 0), value=True)
        for layer in self.encoder:
            words = layer(words, seen[:, None, None])
        return words, seen

    def decode(self, words: Tensor, seen: Tensor, previous: Tensor) -> Tensor:
        """Logits (B, T, symbols) from encoded words (B, S, D) with their mask (B, S)."""
        steps = previous.shape[1]
        past = torch.ones(1, 1, steps, steps, dtype=torch.bool, device=previous.device).tril()
        states = self.symbols(previous)
        for layer in self.decoder:
            states = layer(states, past, words, seen[:, None, None])
        return functional.linear(states, self.symbols.weight, self.bias)

    def forward(self, inputs: Tensor, lengths: Tensor, previous: Tensor) -> Tensor:
        """As in benchmarks/plain_sequences.py."""
        return self.decode(*self.encode(inputs, known(inputs, lengths)), previous)


class PairwiseTransformer(Transformer):
    """models.pairwise_transformer, whose function also finds the query and its pairs in an input."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__(case, weights)
        self.pair = nn.Parameter(weights["pair_embedding"].clone())
        self.where = pairwise_transformer.buffers(case.model_parameters, case.about, 0)

    def forward(self, inputs: Tensor, lengths: Tensor, previous: Tensor) -> Tensor:
        """As in benchmarks/plain_sequences.py."""
        one = SimpleNamespace(inputs=inputs.unsqueeze(0), input_lengths=lengths.unsqueeze(0))
        where = (values.unsqueeze(0) for values in self.where.values())
        tokens, filled = (values[0] for values in pairwise_transformer.parted(one, *where, len(self.pair)))
        words, seen = self.encode(tokens.flatten(0, 1), filled.flatten(0, 1))
        words = words.unflatten(0, (len(inputs), -1)) + self.pair[:, None]
        return self.decode(words.flatten(1, 2), seen.view(len(inputs), -1), previous)
