"""The results of programs: undirected multigraphs, which a cursor builds.

The semantics follow Whitehouse, "Symbolic Synthesis of Neural Networks" (arXiv 2303.03340). A state is a graph, a cursor (a node
and a port) and a stack of nodes. Every edge has the same port at both ends, and a node has at most one edge per port. Every
primitive changes the state and then continues with its (last) argument. Impossible changes are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import networkx

from compositional.synthesis.programs import Library, Term, hole

PORTS = 10


class Edge(NamedTuple):
    """An undirected edge. Nodes and edges are numbered jointly in order of creation."""

    ident: int
    left: int
    right: int
    port: int


class State(NamedTuple):
    """Nodes and edges by identifier, the cursor's position and port, the stack (top last), and the node without an edge."""

    nodes: tuple[int, ...] = (0,)
    edges: tuple[Edge, ...] = ()
    position: int = 0
    port: int = 0
    stack: tuple[int, ...] = ()
    isolated: int | None = None  # a new node that is not connected yet; no other can be added before it is

    @property
    def connected(self) -> bool:
        """Whether no new node waits for its first edge."""
        return self.isolated is None

    @property
    def valid(self) -> bool:
        """Whether the graph is a valid result: connected, with more than one node."""
        return self.connected and len(self.nodes) > 1

    def neighbor(self, node: int, port: int) -> int | None:
        """The node at the other end of a node's edge at a port; None if there is no such edge."""
        for edge in self.edges:
            if edge.port == port and node in (edge.left, edge.right):
                return edge.right if node == edge.left else edge.left
        return None


Transformer = Callable[[State], State]


# States that a search makes most are constructed directly: `_replace` is several times slower.
def _connect(state: State) -> State:
    if not state.stack:
        return state
    here, there = state.position, state.stack[-1]
    if here == there or any(edge.port == state.port and not {here, there}.isdisjoint(edge[1:3]) for edge in state.edges):
        return state
    edge = Edge(len(state.nodes) + len(state.edges), here, there, state.port)
    isolated = None if state.isolated in (here, there) else state.isolated
    return State(state.nodes, (*state.edges, edge), here, state.port, state.stack, isolated)


def _add(state: State) -> State:
    if not state.stack or not state.connected:
        return state
    node = len(state.nodes) + len(state.edges)
    return State((*state.nodes, node), state.edges, node, state.port, state.stack, node)


def _pop(state: State) -> State:
    # A node that waits for an edge needs another node on the stack to which it can be connected.
    rest = state.stack[:-1]
    if not state.connected and all(node == state.position for node in rest):
        return state
    return State(state.nodes, state.edges, state.position, state.port, rest, state.isolated)


def _move(state: State) -> State:
    neighbor = state.neighbor(state.position, state.port)
    return state if neighbor is None else state._replace(position=neighbor)


def _push(state: State) -> State:
    return State(state.nodes, state.edges, state.position, state.port, (*state.stack, state.position), state.isolated)


def _turned(step: int) -> Transformer:
    def turn(state: State) -> State:
        port = (state.port + step) % PORTS
        return State(state.nodes, state.edges, state.position, port, state.stack, state.isolated)

    return turn


_STEPS: dict[str, Transformer] = {
    "next_port": _turned(1),
    "prev_port": _turned(-1),
    "move": _move,
    "add": _add,
    "push": _push,
    "pop": _pop,
    "connect": _connect,
}


def _func(inner: Transformer, then: Transformer) -> Transformer:
    def run(state: State) -> State:
        result = inner(state)
        if result.connected:  # otherwise its graph is discarded; cursor and stack are always restored
            state = state._replace(nodes=result.nodes, edges=result.edges, isolated=None)
        return then(state)

    return run


def _if_positions_equal(first: Transformer, second: Transformer, same: Transformer, other: Transformer, then: Transformer):
    def run(state: State) -> State:
        branch = same if first(state).position == second(state).position else other
        return then(branch(state))

    return run


def primitive(head: str, arguments: tuple[Transformer, ...]) -> Transformer:
    """The transformer that results from applying a primitive to its arguments."""
    if head == "identity":
        return lambda state: state
    if head == "func":
        return _func(*arguments)
    if head == "if_positions_equal":
        return _if_positions_equal(*arguments)
    step, (then,) = _STEPS[head], arguments
    return lambda state: then(step(state))


def combine(library: Library, head: str, arguments: tuple[Transformer, ...]) -> Transformer:
    """The transformer that results from applying a primitive or an invention to its arguments."""

    def build(term: Term) -> Transformer:
        index = hole(term)
        if index is not None:
            return arguments[index]
        return combine(library, term.head, tuple(build(argument) for argument in term.arguments))

    return build(library.bodies[head]) if head in library.bodies else primitive(head, arguments)


def transformer(library: Library, term: Term) -> Transformer:
    """The transformer of states that a well-typed program computes."""
    return combine(library, term.head, tuple(transformer(library, argument) for argument in term.arguments))


def run(library: Library, term: Term) -> State:
    """The state to which a program transforms a single node."""
    return transformer(library, term)(State())


def simple(state: State) -> networkx.Graph:
    """The graph without ports, in which parallel edges are merged."""
    graph = networkx.Graph()
    graph.add_nodes_from(state.nodes)
    graph.add_edges_from((edge.left, edge.right) for edge in state.edges)
    return graph


class Classes:
    """Classes of graphs whose simple graphs are isomorphic: `of` gives each class a number."""

    def __init__(self) -> None:
        self._seen: dict[tuple, int] = {}  # labelled graphs, so that most look-ups are fast
        self._by_degrees: dict[tuple, list[tuple[networkx.Graph, int]]] = {}
        self._count = 0

    def of(self, state: State) -> int:
        """The number of the state's class; equal if and only if the simple graphs are isomorphic."""
        places = {node: place for place, node in enumerate(state.nodes)}
        pairs = frozenset(frozenset((places[edge.left], places[edge.right])) for edge in state.edges)
        labelled = (len(state.nodes), pairs)
        if labelled not in self._seen:
            graph = simple(state)
            key = tuple(sorted(degree for _, degree in graph.degree))
            known = self._by_degrees.setdefault(key, [])
            number = next((number for other, number in known if networkx.vf2pp_is_isomorphic(graph, other)), None)
            if number is None:
                number, self._count = self._count, self._count + 1
                known.append((graph, number))
            self._seen[labelled] = number
        return self._seen[labelled]
