"""The sequence models as a careful user writes them: one run, PyTorch's own layers, batches padded to their longest sentence.

Each takes the weights of one run of this project and computes the same numbers: `benchmarks/families.py` compares like with like.
`forward(inputs (B, S), lengths (B,), previous (B, T))` gives logits (B, T, symbols); `previous` is the target one step earlier.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from compositional.training.problem import Problem

Weights = dict[str, Tensor]
SMALLEST = 1e-12


def table(values: Tensor) -> nn.Embedding:
    """An embedding with these rows."""
    return nn.Embedding.from_pretrained(values.clone(), freeze=False)


def dense(weights: Weights, name: str) -> nn.Linear:
    """The layer `name`, with a bias if it has one."""
    layer = nn.Linear(*weights[f"{name}.weight"].shape, bias=f"{name}.bias" in weights)
    layer.weight.data = weights[f"{name}.weight"].T.contiguous()
    if layer.bias is not None:
        layer.bias.data = weights[f"{name}.bias"].clone()
    return layer


def _gates(values: Tensor) -> Tensor:
    """This project's last two gates are output and candidate, PyTorch's are the other way round."""
    into, keep, out, candidate = values.transpose(0, -1).chunk(4)
    return torch.cat([into, keep, candidate, out])


def _fill(module: nn.RNNBase | nn.LSTMCell, weights: Weights, name: str, end: str = "") -> None:
    width = weights[f"{name}.bias"].shape[0] // 4
    with torch.no_grad():
        if f"{name}.input" in weights:
            getattr(module, f"weight_ih{end}").copy_(_gates(weights[f"{name}.input"]))
        recurrent = weights.get(f"{name}.recurrent", torch.zeros(width, 4 * width))
        getattr(module, f"weight_hh{end}").copy_(_gates(recurrent))
        getattr(module, f"bias_ih{end}").copy_(_gates(weights[f"{name}.bias"]))
        getattr(module, f"bias_hh{end}").zero_()


def lstm(weights: Weights, *names: str) -> nn.LSTM:
    """An LSTM, of two directions if there are two names; without inputs it has one, to be given zeros."""
    inputs = weights[f"{names[0]}.input"].shape[0] if f"{names[0]}.input" in weights else 1
    width = weights[f"{names[0]}.bias"].shape[0] // 4
    module = nn.LSTM(inputs, width, batch_first=True, bidirectional=len(names) == 2)
    for name, end in zip(names, ("_l0", "_l0_reverse"), strict=False):
        _fill(module, weights, name, end)
    return module


def cell(weights: Weights, name: str) -> nn.LSTMCell:
    """A single step of an LSTM, for decoders that feed back what they have decided."""
    module = nn.LSTMCell(weights[f"{name}.input"].shape[0], weights[f"{name}.bias"].shape[0] // 4)
    _fill(module, weights, name)
    return module


def read(encoder: nn.LSTM, words: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """States (B, S, 2 H) and what both directions end with, (B, 2 H)."""
    packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
    states, (hidden, _) = encoder(packed)
    states, _ = pad_packed_sequence(states, batch_first=True, total_length=words.shape[1])
    return states, torch.cat([hidden[0], hidden[1]], 1)


def known(inputs: Tensor, lengths: Tensor) -> Tensor:
    """Which positions are words, (B, S)."""
    return torch.arange(inputs.shape[1], device=inputs.device) < lengths.unsqueeze(1)


def last(states: Tensor, lengths: Tensor) -> Tensor:
    """What stands at each input's last word, (B, H)."""
    return states[torch.arange(len(states), device=states.device), lengths - 1]


def look(queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    """Shares (B, T, S) of queries (B, T, H) over keys (B, S, H)."""
    return (queries @ keys.transpose(1, 2)).masked_fill(~mask.unsqueeze(1), float("-inf")).softmax(-1)


def noisy(clean: list[Tensor], mask: Tensor, training: bool) -> tuple[list[Tensor], Tensor]:
    """regularizers.entropy: embeddings (B, S, D) with noise in training, and their mean squared norm."""
    penalty = torch.stack([(words.square().mean(-1) * mask).sum(1).mean() for words in clean]).sum()
    return [words + torch.randn_like(words) if training else words for words in clean], penalty


class PrimitiveAttention(nn.Module):
    """models.primitive_attention, with the noise and the norm of regularizers.entropy."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        self.primitive, self.function = (table(weights[f"{name}_embedding"]) for name in ("primitive", "function"))
        self.encoder, self.decoder = lstm(weights, "encoder.forward", "encoder.backward"), lstm(weights, "decoder")
        self.output, self.penalty = dense(weights, "output"), torch.zeros(())

    def forward(self, inputs: Tensor, lengths: Tensor, previous: Tensor) -> Tensor:
        mask = known(inputs, lengths)
        (primitive, function), self.penalty = noisy([self.primitive(inputs), self.function(inputs)], mask, self.training)
        states, ends = read(self.encoder, function, lengths)
        nothing = states.new_zeros(*previous.shape, 1)
        decoded, _ = self.decoder(nothing, (ends.unsqueeze(0), torch.zeros_like(ends).unsqueeze(0)))
        return self.output(look(decoded, states, mask) @ primitive)


class LSTMAttention(nn.Module):
    """models.lstm_attention without copying."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        self.words, self.symbols = table(weights["input_embedding"]), table(weights["output_embedding"])
        self.encoder, self.decoder = lstm(weights, "encoder.forward", "encoder.backward"), lstm(weights, "decoder")
        self.key, self.output = dense(weights, "key"), dense(weights, "output")
        self.drop = nn.Dropout(case.model_parameters["dropout"])

    def forward(self, inputs: Tensor, lengths: Tensor, previous: Tensor) -> Tensor:
        states, _ = read(self.encoder, self.drop(self.words(inputs)), lengths)
        start = torch.cat([states[:, 0], last(states, lengths)], 1).unsqueeze(0)
        decoded, _ = self.decoder(self.drop(self.symbols(previous)), (start, torch.zeros_like(start)))
        context = look(decoded, self.key(states), known(inputs, lengths)) @ states
        return self.output(self.drop(torch.cat([decoded, context], -1)))


class InputFeeding(nn.Module):
    """models.lstm_input_feeding: GeoQuery's decoder, whose step reads what the step before has decided."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        self.words, self.symbols = table(weights["input_embedding"]), table(weights["output_embedding"])
        self.encoder, self.decoder = lstm(weights, "encoder.forward", "encoder.backward"), cell(weights, "decoder")
        self.annotation, self.key, self.combined, self.output = (
            dense(weights, name) for name in ("annotation", "key", "combined", "output")
        )
        self.drop, self.copying_weight = (nn.Dropout(case.model_parameters["dropout"]), case.model_parameters["copying_weight"])
        alike = case.model.buffers(case.model_parameters, case.about, 0)["alike"]
        self.register_buffer("alike", alike[:, : len(case.about["target_words"])])

    def forward(self, inputs: Tensor, lengths: Tensor, previous: Tensor) -> Tensor:
        mask = known(inputs, lengths)
        states, ends = read(self.encoder, self.drop(self.words(inputs)), lengths)
        annotations = self.annotation(states)
        keys, past = self.key(annotations), self.drop(self.symbols(previous))
        hidden = ends.unflatten(1, (2, -1)).sum(1)
        memory, decision = torch.zeros_like(hidden), torch.zeros_like(hidden)
        decisions, looks = [], []
        for step in range(previous.shape[1]):
            hidden, memory = self.decoder(torch.cat([past[:, step], self.drop(decision)], 1), (hidden, memory))
            looks.append(look(hidden.unsqueeze(1), keys, mask))
            context = (looks[-1] @ annotations).squeeze(1)
            decision = self.drop(self.combined(torch.cat([hidden, context], 1)))
            decisions.append(decision)
        logits = self.output(torch.stack(decisions, 1))
        alike = self.alike[inputs] * mask.unsqueeze(-1)
        in_input = (alike.amax(1) > 0).unsqueeze(1)
        writing, copying = logits.tensor_split([logits.shape[2] - 1], 2)
        both = torch.cat([writing.masked_fill(in_input, float("-inf")), copying], 2).log_softmax(2)
        where = (torch.cat(looks, 1) @ alike).clamp_min(SMALLEST).log()
        where = where.detach() + self.copying_weight * (where - where.detach())
        return torch.where(in_input, where + both[..., -1:], both[..., :-1])


class PointerGenerator(nn.Module):
    """models.pointer_generator."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        self.words, self.symbols = table(weights["input_embedding"]), table(weights["output_embedding"])
        self.encoder, self.decoder = lstm(weights, "encoder.forward", "encoder.backward"), cell(weights, "decoder")
        self.query, self.combined, self.output, self.copied = (
            dense(weights, name) for name in ("query", "combined", "output", "copied")
        )
        self.key, self.score = (nn.Parameter(weights[f"{name}.weight"].clone()) for name in ("key", "score"))
        self.drop = nn.Dropout(case.model_parameters["dropout"])
        alike = case.model.buffers(case.model_parameters, case.about, 0)["alike"]
        self.register_buffer("alike", alike[:, : len(case.about["target_words"])])

    def forward(self, inputs: Tensor, lengths: Tensor, previous: Tensor) -> Tensor:
        mask = known(inputs, lengths)
        states, hidden = read(self.encoder, self.words(inputs), lengths)
        keys, past = states @ self.key, self.symbols(previous)
        memory, decision = torch.zeros_like(hidden), torch.zeros_like(hidden)
        decisions, looks = [], []
        for step in range(previous.shape[1]):
            hidden, memory = self.decoder(torch.cat([past[:, step], decision], 1), (hidden, memory))
            scores = ((self.query(hidden).unsqueeze(1) + keys).tanh() @ self.score).squeeze(2)
            looks.append(scores.masked_fill(~mask, float("-inf")).softmax(1))
            context = (looks[-1].unsqueeze(1) @ states).squeeze(1)
            decision = self.drop(self.combined(torch.cat([context, hidden], 1)))
            decisions.append(decision)
        decided = torch.stack(decisions, 1)
        copied = torch.stack(looks, 1) @ (self.alike[inputs] * mask.unsqueeze(-1))
        share = self.copied(decided).sigmoid()
        return ((1 - share) * self.output(decided).softmax(2) + share * copied).clamp_min(SMALLEST).log()


class SyntacticAttention(nn.Module):
    """models.syntactic_attention."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        self.semantics, self.syntax = table(weights["semantic_embedding"]), table(weights["syntactic_embedding"])
        self.around = lstm(weights, "surroundings.forward", "surroundings.backward")
        self.encoder, self.decoder = lstm(weights, "encoder.forward", "encoder.backward"), cell(weights, "decoder")
        self.end = nn.Parameter(weights["end"].clone())
        self.start, self.output = dense(weights, "start"), dense(weights, "output")
        self.drop = nn.Dropout(case.model_parameters["dropout"])

    def forward(self, inputs: Tensor, lengths: Tensor, previous: Tensor) -> Tensor:
        mask = known(inputs, lengths)
        ahead, back = read(self.around, self.drop(self.syntax(inputs)), lengths)[0].chunk(2, -1)
        context = torch.cat([functional.pad(ahead, (0, 0, 1, 0))[:, :-1], functional.pad(back, (0, 0, 0, 1))[:, 1:]], -1)
        at_end = torch.arange(inputs.shape[1], device=inputs.device) == lengths.unsqueeze(1) - 1
        syntax, ends = read(self.encoder, torch.where(at_end.unsqueeze(2), self.end, context), lengths)
        query = self.start(ends).relu()
        hidden = memory = torch.zeros_like(query)
        looks = []
        for _ in range(previous.shape[1]):
            looks.append(look(query.unsqueeze(1), syntax, mask))
            hidden, memory = self.decoder((looks[-1] @ syntax).squeeze(1), (hidden, memory))
            query = hidden
        return self.output(torch.cat(looks, 1) @ self.drop(self.semantics(inputs)))


class MetaSequenceToSequence(nn.Module):
    """models.meta_sequence_to_sequence; the pairs of a batch of episodes are in the same places."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        self.words, self.meanings, self.symbols = (table(weights[f"{name}_embedding"]) for name in ("input", "meaning", "output"))
        self.encoder = lstm(weights, "encoder.forward", "encoder.backward")
        self.meaning, self.decoder = lstm(weights, "meaning.forward", "meaning.backward"), lstm(weights, "decoder")
        self.context, self.decided, self.output = (dense(weights, name) for name in ("context", "decided", "output"))
        self.drop = nn.Dropout(case.model_parameters["dropout"])
        self.means, self.do = (case.about["source_words"].index(word) for word in ("means", "do"))

    def forward(self, inputs: Tensor, lengths: Tensor, previous: Tensor) -> Tensor:
        pairs = (inputs[0] == self.means).nonzero().squeeze(1)
        begin = int((inputs[0] == self.do).nonzero()) + 1
        commands, lengths = inputs[:, begin:], lengths - begin
        states, _ = read(self.encoder, self.drop(self.words(commands)), lengths)
        keys = self.encoder(self.words(inputs[:, pairs - 1]).flatten(0, 1).unsqueeze(1))[0].view(len(inputs), len(pairs), -1)
        values = self.meaning(self.meanings(inputs[:, pairs + 1]).flatten(0, 1).unsqueeze(1))[0].view_as(keys)
        found = (states @ keys.transpose(1, 2) / math.sqrt(keys.shape[2])).softmax(-1) @ values
        context = self.context(torch.cat([states, found], -1)).tanh()
        start = last(context, lengths).unsqueeze(0)
        decoded, _ = self.decoder(self.drop(self.symbols(previous)), (start, torch.zeros_like(start)))
        attended = look(decoded, context, known(commands, lengths)) @ context
        return self.output(self.decided(torch.cat([decoded, attended], -1)).tanh())


class CGPS(nn.Module):
    """models.cgps, with the noise and the norm of regularizers.entropy."""

    def __init__(self, case: Problem, weights: Weights) -> None:
        super().__init__()
        self.primitive, self.function = (table(weights[f"{name}_embedding"]) for name in ("primitive", "function"))
        self.encoder, self.decoder = lstm(weights, "encoder.forward", "encoder.backward"), cell(weights, "decoder")
        self.key, self.attended, self.position, self.output = (
            dense(weights, name) for name in ("key", "attended", "position", "output")
        )
        self.penalty = torch.zeros(())

    def forward(self, inputs: Tensor, lengths: Tensor, previous: Tensor) -> Tensor:
        mask = known(inputs, lengths)
        (primitive, function), self.penalty = noisy([self.primitive(inputs), self.function(inputs)], mask, self.training)
        states, hidden = read(self.encoder, function, lengths)
        keys, memory, attended = self.key(states), torch.zeros_like(hidden), torch.zeros_like(hidden)
        found = []
        for _ in range(previous.shape[1]):
            hidden, memory = self.decoder(attended, (hidden, memory))
            context = (look(hidden.unsqueeze(1), keys, mask) @ states).squeeze(1)
            attended = self.attended(torch.cat([hidden, context], 1))
            found.append(attended)
        scores = self.position(torch.stack(found, 1))[..., : inputs.shape[1]]
        return self.output(scores.masked_fill(~mask.unsqueeze(1), float("-inf")).softmax(-1) @ primitive)
