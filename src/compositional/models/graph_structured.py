"""A network whose computation follows a program's graph: G-SSNN (Whitehouse, "Symbolic Synthesis of Neural Networks",
arXiv 2303.03340).

The encoder of the baseline (`pixel_shuffle_transformer`) computes a feature vector. Each node and edge of the graph gets a chunk
of it and a position embedding. Layers of message passing (GINE: Hu et al., "Strategies for Pre-training Graph Neural Networks",
ICLR 2020) compute along the edges, and the mean over nodes gives the scores. A run's graph is not a weight but a buffer: graphs
are padded to `max_nodes` and `max_edges`, so that runs with different graphs train together.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from compositional.kinds.puzzle import Batch
from compositional.layers import Weights
from compositional.layers.functional import gather, initialize_linear
from compositional.layers.tap import dropout
from compositional.models import pixel_shuffle_transformer

KIND = "puzzle"
REPRESENTATIONS = ("features", "graph")
PARAMETERS = pixel_shuffle_transformer.PARAMETERS | {
    "features": {
        "type": "integer",
        "minimum": 8,
        "multipleOf": 4,
        "default": 512,
        "description": "width of the feature vector, of nodes and of edges",
    },
    "layers": {"type": "integer", "minimum": 1, "default": 3, "description": "layers of message passing"},
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.3,
        "description": "share of node and edge features that is dropped before every layer",
    },
    "max_nodes": {"type": "integer", "minimum": 2, "default": 32, "description": "number of nodes to which graphs are padded"},
    "max_edges": {"type": "integer", "minimum": 1, "default": 64, "description": "number of edges to which graphs are padded"},
}


def initialize(parameters: dict, task: dict, source: np.random.Generator) -> Weights:
    """Weights of one run; they do not depend on its graph."""
    width = parameters["features"]
    weights = pixel_shuffle_transformer.initialize_encoder(parameters, task, source)
    weights |= initialize_linear(source, parameters["width"], width, "features")
    for index in range(parameters["layers"]):
        weights |= initialize_linear(source, width, width, f"message{index}")
    return weights | initialize_linear(source, width, task["classes"] - 1, "output")


def individual(task: dict, seed: int) -> dict:
    """Member `seed` of the task's population.

    Raises:
        ValueError: the task has no such member.
    """
    members = task.get("population", [])
    if seed >= len(members):
        have = f"programs 0 to {len(members) - 1}" if members else "no population of programs; build it from raven_evolved"
        raise ValueError(f"task {task['task']!r} has {have}: there is none for seed {seed}")
    return members[seed]


def describe(parameters: dict, task: dict, seed: int) -> list[tuple[str, str, float]]:
    """Rows (split, metric, value) that describe a run's program: its sizes, its origin, and the library in which it is written.

    Split "program", metric "is <text>" holds the program itself. Split "library", metric "<name> = <body>" holds an invention;
    the value is its index. `origin` is the program's number in the previous generation, or -1 if it is new. For `changed` see
    `synthesis.population.Individual`.
    """
    member = individual(task, seed)
    numbers = {"size": member["size"], "mass": member["mass"], "nodes": len(member["graph"]["nodes"])}
    numbers |= {"edges": len(member["graph"]["edges"]), "origin": -1 if member["origin"] is None else member["origin"]}
    numbers["changed"] = int(member["changed"])
    rows = [("program", name, value) for name, value in numbers.items()] + [("program", f"is {member['program']}", 1)]
    rows += [("library", f"{name} = {body}", place) for place, (name, body) in enumerate(task["library"])]
    last = task["explorations"][-1]
    totals = {name: sum(report[name] for report in task["explorations"]) for name in ("programs", "new", "replaced")}
    return rows + [("exploration", name, value) for name, value in (totals | {"valid": last["valid"]}).items()]


def chunks(elements: int, width: int) -> np.ndarray:
    """Which entries of the feature vector each element reads, (elements, width): its own chunk, repeated.

    Chunks have width // elements entries; the first one also has the remainder.
    """
    length = width // elements
    first = width - length * (elements - 1)
    starts = [0, *range(first, width, length)]
    lengths = [first] + [length] * (elements - 1)
    return np.stack([start + np.arange(width) % own for start, own in zip(starts, lengths, strict=True)])


def buffers(parameters: dict, task: dict, seed: int) -> dict[str, Tensor]:
    """The graph of run `seed`: the entries of the feature vector that nodes and edges read, their positions, and the edges' ends.

    Rows 0..max_nodes - 1 are nodes, the others edges. Ids (the order of creation) and ports determine their chunks and positions.

    Raises:
        ValueError: there is no such graph, or it is larger than max_nodes and max_edges.
    """
    graph = individual(task, seed)["graph"]
    nodes, edges = graph["nodes"], graph["edges"]
    most_nodes, most_edges, width = parameters["max_nodes"], parameters["max_edges"], parameters["features"]
    elements = len(nodes) + len(edges)
    if len(nodes) > most_nodes or len(edges) > most_edges or elements > width:
        raise ValueError(
            f"program {seed} of {task['task']!r} has {len(nodes)} nodes and {len(edges)} edges; the model allows "
            f"{most_nodes} and {most_edges}, and at most {width} (`features`) in all"
        )
    rows = [(row, ident, 0) for row, ident in enumerate(nodes)]
    rows += [(most_nodes + row, ident, port + 1) for row, (ident, _, _, port) in enumerate(edges)]
    place = torch.tensor(rows)
    reads = torch.zeros(most_nodes + most_edges, width, dtype=torch.int64)
    reads[place[:, 0]] = torch.from_numpy(chunks(elements, width))[place[:, 1]]
    positions = torch.zeros(most_nodes + most_edges, width)
    positions[place[:, 0]] = pixel_shuffle_transformer.sincos(place[:, 1:], width)
    ends = torch.zeros(2, most_edges, most_nodes)
    for row, (_, left, right, _) in enumerate(edges):
        ends[0, row, nodes.index(left)] = ends[1, row, nodes.index(right)] = 1
    share = torch.zeros(most_nodes)
    share[: len(nodes)] = 1 / len(nodes)
    most_uses = -(-width // max(1, width // (most_nodes + most_edges)))
    real = (place[:, :1] * width + torch.arange(width)).flatten()
    return {
        "graph.reads": reads.flatten(),
        "graph.users": _users(reads.flatten(), real, width, most_uses),
        "graph.positions": positions,
        "graph.ends": ends,
        "graph.share": share,
    }


def _users(reads: Tensor, real: Tensor, width: int, most: int) -> Tensor:
    """For each of `width` entries, the positions among `real` that read it: (width, most), padded with len(reads)."""
    places = real[torch.argsort(reads[real], stable=True)]
    entries = reads[places]
    rank = torch.arange(len(places)) - torch.searchsorted(entries, entries)
    users = torch.full((width, most), len(reads))
    users[entries, rank] = places
    return users


def forward(parameters: dict, weights: Weights, batch: Batch, tap) -> Tensor:
    """Class scores (R, B, classes); `weights` also holds the buffers."""
    features = pixel_shuffle_transformer.layer(pixel_shuffle_transformer.encode(parameters, weights, batch), weights, "features")
    features = tap("features", features, None)
    runs, _, width = features.shape
    nodes, rate = parameters["max_nodes"], parameters["dropout"]
    read = gather(features, weights["graph.reads"], weights["graph.users"]).unflatten(2, (-1, width))
    elements = read.transpose(1, 2) + weights["graph.positions"].unsqueeze(2)  # (R, nodes + edges, B, width)
    hidden, edges = elements[:, :nodes], elements[:, nodes:]
    ends = weights["graph.ends"]
    senders, receivers = ends.flatten(1, 2), ends.flip(1).flatten(1, 2).transpose(1, 2)  # both directions of every edge
    for index in range(parameters["layers"]):
        hidden, kept = dropout(tap, hidden, rate), dropout(tap, edges, rate)
        sent = torch.bmm(senders, hidden.reshape(runs, nodes, -1)).view(runs, 2, *edges.shape[1:])
        messages = (sent + kept.unsqueeze(1)).relu().view(runs, ends.shape[2] * 2, -1)
        received = torch.bmm(receivers, messages).view_as(hidden)
        hidden = pixel_shuffle_transformer.layer(hidden + received, weights, f"message{index}")
    graph = (hidden * weights["graph.share"].view(runs, nodes, 1, 1)).sum(1)
    return pixel_shuffle_transformer.scores(tap("graph", graph, None), weights)
