"""Graphs that programs build, compared with graphs derived by hand."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs import chains, run, terms

from compositional.synthesis import graphs
from compositional.synthesis.programs import Library


def edges(text: str) -> list[tuple]:
    return [tuple(edge) for edge in run(text).edges]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("(push (add (connect identity)))", [(2, 1, 0, 0)]),
        ("(add (connect identity))", []),  # nothing on the stack: no node
        ("(push (connect identity))", []),  # a node is not connected to itself
        ("(push (add (connect (connect identity))))", [(2, 1, 0, 0)]),  # the port is taken
        ("(push (add (connect (next_port (connect identity)))))", [(2, 1, 0, 0), (3, 1, 0, 1)]),
        ("(prev_port (push (add (connect identity))))", [(2, 1, 0, 9)]),
        # The second node is on the stack and its port 0 is taken, so the third one waits.
        ("(push (add (connect (push (add (connect identity))))))", [(2, 1, 0, 0)]),
        ("(push (add (connect (push (next_port (add (connect identity)))))))", [(2, 1, 0, 0), (4, 3, 1, 1)]),
        ("(push (add (connect (push (pop (next_port (add (connect identity))))))))", [(2, 1, 0, 0), (4, 3, 0, 1)]),
        # move returns to node 0; from there a new node is connected to node 0 itself, which is on the stack.
        ("(push (add (connect (move (push (next_port (add (connect identity))))))))", [(2, 1, 0, 0), (4, 3, 0, 1)]),
        # func keeps the graph and restores the cursor: it is at port 0 of node 0 again, which is taken.
        ("(push (func (add (connect identity)) (add (connect identity))))", [(2, 1, 0, 0)]),
        ("(push (func (add (connect identity)) (next_port (add (connect identity)))))", [(2, 1, 0, 0), (4, 3, 0, 1)]),
        # A func whose graph is not connected is discarded.
        ("(push (func (add identity) (add (connect identity))))", [(2, 1, 0, 0)]),
        # if: the cursors of the first two agree (first branch) or do not (second branch); then the program continues.
        ("(push (if_positions_equal identity identity (add (connect identity)) identity identity))", [(2, 1, 0, 0)]),
        ("(push (if_positions_equal (add identity) identity identity (add (connect identity)) identity))", [(2, 1, 0, 0)]),
        ("(push (if_positions_equal (add identity) identity (add (connect identity)) identity identity))", []),
    ],
)
def test_programs_build_the_graphs_derived_by_hand(program, expected):
    assert edges(program) == expected


def test_cursor_stack_and_ports():
    assert run("(prev_port identity)").port == 9
    assert run("(next_port (next_port identity))").port == 2
    assert run("(push (push (pop identity)))").stack == (0,)
    assert run("(pop identity)").stack == ()
    assert run("(push (add (connect (move identity))))").position == 0
    assert run("(push (add (connect (next_port (move identity)))))").position == 1  # no edge at this port
    # A waiting node keeps a node on the stack to which it can be connected: here the only one.
    waiting = run("(push (add (pop identity)))")
    assert (waiting.stack, waiting.isolated, waiting.valid) == ((0,), 1, False)
    assert run("(push (push (add (pop identity))))").stack == (0,)
    assert not run("identity").valid
    assert not run("(push (add (add identity)))").connected
    assert len(run("(push (add (add identity)))").nodes) == 2  # no second node before the first is connected


@settings(max_examples=150)
@given(st.one_of(terms(), chains(["push", "add", "connect", "next_port", "pop", "move", "prev_port"])))
def test_valid_programs_make_connected_graphs(term):
    state = graphs.run(Library(), term)
    graph = graphs.simple(state)
    assert networkx.is_connected(graph) == state.connected
    assert state.valid == (len(graph) > 1 and networkx.is_connected(graph))
    assert sorted([*state.nodes, *(edge.ident for edge in state.edges)]) == list(range(len(state.nodes) + len(state.edges)))
    ends = [(node, edge.port) for edge in state.edges for node in (edge.left, edge.right)]
    assert len(ends) == len(set(ends))  # at most one edge at a node's port
    assert all(edge.left != edge.right for edge in state.edges)
    assert {state.position, *state.stack} <= set(state.nodes)


def test_graphs_have_the_same_class_if_and_only_if_they_are_isomorphic():
    path = run("(push (add (connect (next_port (push (add (connect identity)))))))")
    other_path = run("(push (add (connect (next_port (add (connect identity))))))")
    doubled = run("(push (add (connect (next_port (connect identity)))))")
    edge = run("(push (add (connect identity)))")
    classes = graphs.Classes()
    numbers = [classes.of(state) for state in (path, other_path, doubled, edge)]
    assert len(path.nodes) == len(other_path.nodes) == 3
    assert numbers == [0, 0, 1, 1]  # parallel edges count once
