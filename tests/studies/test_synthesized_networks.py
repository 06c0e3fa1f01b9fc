"""The study of symbolically synthesized networks: puzzles, programs, search, networks, and the loop as a workflow."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text
from scipy import stats
from support.configurations import SCHEMA, merged, read
from support.project import Project

from compositional import plugins
from compositional.configuration.configuration import Configuration, ConfigurationError
from compositional.datasets import raven
from compositional.evaluation.metrics import measure
from compositional.figures import synthesized_correlation, synthesized_ranks
from compositional.figures.shared import synthesized as tables
from compositional.kinds.puzzle import PuzzleSplit
from compositional.layers.functional import gather
from compositional.layers.tap import dropout, silent_tap
from compositional.models import Model, graph_structured, pixel_shuffle_transformer
from compositional.planning import targets
from compositional.plugins import defaults
from compositional.runs import Run
from compositional.synthesis import graphs, population
from compositional.synthesis.grammar import Grammar, enumerate_terms, expected_counts, reestimate
from compositional.synthesis.programs import PRIMITIVES, Library, Term, parse
from compositional.tasks import raven as raven_task
from compositional.tasks import raven_evolved
from compositional.training.loop import train_runs
from compositional.training.problem import Problem, buffers, initial_weights
from compositional.training.state import State, fresh_state

torch.set_num_threads(1)
ROOT = Path(__file__).parents[2]
FN_0 = "(push (add (connect #0)))"


# Puzzles.


def holds(rule: raven.Rule, rows: list, slots: int) -> bool:
    """Whether the values of three rows (sets of slots for positions) follow a rule, checked without the generator's code."""
    if rule.name == "constant":
        return all(a == b == c for a, b, c in rows)
    if rule.name == "distribute_three":
        columns = list(zip(*rows, strict=True))
        return all(len(set(line)) == 3 for line in [*rows, *columns]) and len({value for row in rows for value in row}) == 3
    if rule.attribute == "position":
        if rule.name == "progression":
            return all({(slot + rule.step) % slots for slot in x} == y for row in rows for x, y in itertools.pairwise(row))
        return all((a | b if rule.step > 0 else a - b) == c and c for a, b, c in rows)
    if rule.name == "progression":
        return all(b - a == c - b == rule.step for a, b, c in rows)
    return all(a + rule.step * b == c for a, b, c in rows)


def test_every_row_of_every_matrix_follows_its_rules():
    seen = set()
    for number in range(600):
        matrix = raven.generate(0, number)
        for rules, panels, layout in zip(matrix.rules, matrix.panels, raven.TYPES[matrix.type][1], strict=True):
            read = {
                "number": lambda panel: len(panel.slots),
                "position": lambda panel: frozenset(panel.slots),
                "configuration": lambda panel: frozenset(panel.slots),
                "shape": lambda panel: panel.shape,
                "size": lambda panel: panel.size,
                "color": lambda panel: panel.color,
            }
            for rule in rules:
                rows = [tuple(read[rule.attribute](panel) for panel in row) for row in panels]
                assert holds(rule, rows, len(layout.slots)), (number, rule, rows)
                seen.add((rule.name, rule.attribute))
            for panel in itertools.chain(*panels):
                assert 0 <= panel.shape < len(raven.SHAPES)
                assert layout.smallest <= panel.size < len(raven.SIZES)
                assert 0 <= panel.color <= layout.darkest
                assert 1 <= len(panel.slots) == len(set(panel.slots)) <= len(layout.slots)
    assert len(seen) == 1 + 2 * 3 + 3 + 1 + 4  # configuration; number and position; shape; size; color


def test_labels_have_the_balance_of_the_original_generator():
    """Shares of positives by type as counted in 3,000 matrices of raven-gen 0.3.2; four standard errors of both counts."""
    counted = {
        "one_shape": (0.26, 0.15),
        "four_shape": (0.28, 0.2),
        "five_shape": (0.26, 0.2),
        "two_shape_vertical_separator": (0.40, 0.15),
        "two_shape_horizontal_separator": (0.44, 0.15),
        "shape_in_shape": (1.0, 0.15),
    }
    matrices = [raven.generate(5, number) for number in range(3000)]
    for kind, (positive, share) in counted.items():
        own = [matrix for matrix in matrices if matrix.type == kind]
        assert abs(len(own) / 3000 - share) < 4 * math.sqrt(share * (1 - share) / 3000)
        error = math.sqrt(positive * (1 - positive) * 2 / (3000 * share))
        assert abs(np.mean([matrix.has("constant", "color") for matrix in own]) - positive) <= 4 * error + 0.005


def test_the_first_column_leaves_room_for_the_rule():
    def rule(name, attribute, step=0):
        return raven.Rule(name, attribute, step)

    assert raven.first_column(rule("progression", "color", 2), 0, 9) == (0, 5)
    assert raven.first_column(rule("progression", "number", -2), 1, 5) == (5, 5)
    assert raven.first_column(rule("progression", "number", 2), 1, 4) is None
    assert raven.first_column(rule("arithmetic", "number", 1), 1, 5) == (1, 4)
    assert raven.first_column(rule("arithmetic", "number", -1), 1, 5) == (2, 5)
    assert raven.first_column(rule("arithmetic", "color", 1), 0, 0) is None
    assert raven.first_column(rule("distribute_three", "position"), 1, 1) is None


def test_a_matrix_depends_on_seed_and_number_alone():
    code = (
        "import hashlib; from compositional.datasets import raven;"
        "print(hashlib.sha256(b''.join(raven.render(raven.generate(3, n), 128).tobytes() for n in range(40))).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(found) == 1
    assert raven.generate(0, 7) == raven.generate(0, 7) != raven.generate(1, 7)


def test_pictures_show_lines_shapes_and_background():
    for number in range(30):
        matrix = raven.generate(0, number)
        image = raven.render(matrix, 128)
        assert image.shape == (128, 128)
        assert image.dtype == np.uint8
        assert not image[41].any()
        assert not image[:, 84].any()
        colors = {raven.COLORS[panel.color] for rows in matrix.panels for row in rows for panel in row}
        assert set(np.unique(image)) <= colors | {0, matrix.background}


def test_any_rule_is_a_target():
    options = defaults("tasks.raven") | {"train_puzzles": 60, "validation_puzzles": 40, "image_size": 48}
    for target, classes in (("constant_color", 2), ("arithmetic_number", 2), ("shape_rule", 4), ("matrix_type", 6)):
        members, about = raven_task.build(None, options | {"target": target})
        assert about["classes"] == len(about["class_names"]) == classes
        assert set(members["train"]["label"]) <= set(range(classes))
    matrices = [raven.generate(0, number) for number in range(60)]
    assert [raven_task.label(matrix, "progression_shape") for matrix in matrices] == [
        int(any(rule.name == "progression" and rule.attribute == "shape" for rules in matrix.rules for rule in rules))
        for matrix in matrices
    ]
    with pytest.raises(ValueError, match="all 60 training puzzles are 'yes'"):
        raven_task.build(None, options | {"target": "constant_size"})


# Programs and what they compute.


def run(text: str) -> graphs.State:
    return graphs.run(Library(), parse(text))


def edges(text: str) -> list[tuple]:
    return [tuple(edge) for edge in run(text).edges]


def terms(inventions: dict[str, int] | None = None) -> st.SearchStrategy[Term]:
    """Well-typed programs over the primitives and inventions of the given arities."""
    arities = PRIMITIVES | (inventions or {})

    def grow(smaller):
        return st.one_of(
            [
                st.tuples(*[smaller] * arity).map(lambda arguments, head=head: Term(head, tuple(arguments)))
                for head, arity in arities.items()
            ]
        )

    return st.recursive(st.just(Term("identity")), grow, max_leaves=12)


def chains(heads: list[str]) -> st.SearchStrategy[Term]:
    """Long programs of primitives with one argument: these grow graphs."""
    return st.lists(st.sampled_from(heads), max_size=40).map(
        lambda drawn: parse("".join(f"({head} " for head in drawn) + "identity" + ")" * len(drawn))
    )


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("(push (add (connect identity)))", [(2, 1, 0, 0)]),
        ("(add (connect identity))", []),  # nothing on the stack: no node
        ("(push (connect identity))", []),  # a node is not connected to itself
        ("(push (add (connect (connect identity))))", [(2, 1, 0, 0)]),  # the port is taken
        ("(push (add (connect (next_port (connect identity)))))", [(2, 1, 0, 0), (3, 1, 0, 1)]),
        ("(prev_port (push (add (connect identity))))", [(2, 1, 0, 9)]),
        # The second node is on the stack, its port 0 is taken: the third one waits.
        ("(push (add (connect (push (add (connect identity))))))", [(2, 1, 0, 0)]),
        ("(push (add (connect (push (next_port (add (connect identity)))))))", [(2, 1, 0, 0), (4, 3, 1, 1)]),
        ("(push (add (connect (push (pop (next_port (add (connect identity))))))))", [(2, 1, 0, 0), (4, 3, 0, 1)]),
        # move goes back to node 0; from there a new node is connected to node 0 itself by the stack.
        ("(push (add (connect (move (push (next_port (add (connect identity))))))))", [(2, 1, 0, 0), (4, 3, 0, 1)]),
        # func keeps the graph and restores the cursor: the next port is 0 at node 0 again, which is taken.
        ("(push (func (add (connect identity)) (add (connect identity))))", [(2, 1, 0, 0)]),
        ("(push (func (add (connect identity)) (next_port (add (connect identity)))))", [(2, 1, 0, 0), (4, 3, 0, 1)]),
        # func whose graph is not connected is dropped.
        ("(push (func (add identity) (add (connect identity))))", [(2, 1, 0, 0)]),
        # if: the cursors of the first two agree (first branch), or do not (second branch); then goes on.
        ("(push (if_positions_equal identity identity (add (connect identity)) identity identity))", [(2, 1, 0, 0)]),
        ("(push (if_positions_equal (add identity) identity identity (add (connect identity)) identity))", [(2, 1, 0, 0)]),
        ("(push (if_positions_equal (add identity) identity (add (connect identity)) identity identity))", []),
    ],
)
def test_programs_grow_the_graphs_worked_out_by_hand(program, expected):
    assert edges(program) == expected


def test_cursor_stack_and_ports():
    assert run("(prev_port identity)").port == 9
    assert run("(next_port (next_port identity))").port == 2
    assert run("(push (push (pop identity)))").stack == (0,)
    assert run("(pop identity)").stack == ()
    assert run("(push (add (connect (move identity))))").position == 0
    assert run("(push (add (connect (next_port (move identity)))))").position == 1  # no edge at this port
    # A node that waits keeps what it can be connected to: here the stack's only node.
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


def test_text_types_size_and_mass():
    library = Library({"fn_0": FN_0, "fn_1": "(fn_0 (func #0 (next_port #1)))"})
    term = parse("(fn_1 (fn_0 identity) (move identity))")
    assert parse(str(term)) == term
    assert str(library.expand(term)) == (
        "(push (add (connect (func (push (add (connect identity))) (next_port (move identity))))))"
    )
    assert (term.size, library.mass(term), library.expand(term).size) == (5, 11, 11)
    assert graphs.run(library, term) == graphs.run(library, library.expand(term))
    for text, problem in (("(push)", "takes 1 arguments and has 0"), ("(psuh identity)", "unknown name"), ("#0", "unknown name")):
        with pytest.raises(ValueError, match=problem):
            library.check(parse(text))
    for text in ("(push identity", "push identity", ")"):
        with pytest.raises(ValueError, match="is no program"):
            parse(text)
    with pytest.raises(ValueError, match="not numbered from 0"):
        library.add("fn_2", parse("(push #1)"))


@settings(max_examples=60)
@given(terms({"fn_0": 1, "fn_1": 2}))
def test_inventions_stand_for_their_bodies(term):
    library = Library({"fn_0": FN_0, "fn_1": "(func #1 (fn_0 #0))"})
    assert graphs.run(library, term) == graphs.run(library, library.expand(term))
    assert library.mass(term) == library.expand(term).size


def test_graphs_are_told_apart_up_to_isomorphism():
    path = run("(push (add (connect (next_port (push (add (connect identity)))))))")
    other_path = run("(push (add (connect (next_port (add (connect identity))))))")
    doubled = run("(push (add (connect (next_port (connect identity)))))")
    edge = run("(push (add (connect identity)))")
    classes = graphs.Classes()
    numbers = [classes.of(state) for state in (path, other_path, doubled, edge)]
    assert len(path.nodes) == len(other_path.nodes) == 3
    assert numbers == [0, 0, 1, 1]  # several edges between two nodes count once


# Search.


def test_enumeration_is_complete_without_repetition_and_ordered_by_probability():
    library = Library({"fn_0": FN_0})
    source = random.Random(0)
    weights = {name: source.random() + 0.1 for name in library.arities}
    grammar = Grammar(library, {name: math.log(weight / sum(weights.values())) for name, weight in weights.items()})
    found = list(itertools.islice(enumerate_terms(grammar), 3000))
    values = [value for _, value, _ in found]
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(values))

    def log_probability(term: Term) -> float:
        return sum(grammar.log_probabilities[head] for head in term.heads())

    assert all(value == pytest.approx(log_probability(term)) for term, value, _ in found)
    programs = [term for term, *_ in found]
    assert len(set(programs)) == len(programs)
    for term, _, places in found:
        library.check(term)
        assert term.arguments == tuple(programs[place] for place in places)

    def every(size: int) -> list[Term]:
        """All programs of a size, by brute force."""
        made = []
        for head, arity in library.arities.items():
            for sizes in itertools.product(range(1, size), repeat=arity):
                if sum(sizes) == size - 1:
                    made += [Term(head, arguments) for arguments in itertools.product(*map(every, sizes))]
        return made

    likely = {term for size in range(1, 5) for term in every(size) if log_probability(term) > values[-1] + 1e-9}
    assert len(likely) > 50
    assert likely <= set(programs)


def test_inside_outside_against_values_worked_out_by_hand():
    """The program has two derivations: four primitives (p^4), or the invention and identity (p^2), with p = 1/11."""
    library = Library({"fn_0": FN_0})
    grammar = Grammar.uniform(library)
    counts, total = expected_counts(grammar, [parse("(fn_0 identity)")])
    p = 1 / 11
    by_invention = p**2 / (p**2 + p**4)
    assert total == pytest.approx(math.log(p**2 + p**4))
    assert counts["fn_0"] == pytest.approx(by_invention)
    assert counts["identity"] == pytest.approx(1)
    assert counts["push"] == counts["add"] == counts["connect"] == pytest.approx(1 - by_invention)
    assert counts["move"] == 0
    # Nested: each of the two readings is independent of the other.
    counts, total = expected_counts(grammar, [parse("(fn_0 (fn_0 identity))")])
    assert total == pytest.approx(2 * math.log(p + p**3) + math.log(p))
    assert counts["fn_0"] == pytest.approx(2 * by_invention)
    # An argument used twice is derived once.
    twice = Library({"fn_0": "(func #0 #0)"})
    counts, total = expected_counts(Grammar.uniform(twice), [parse("(func (push identity) (push identity))")])
    assert total == pytest.approx(math.log(p**5 + p**3))
    posterior = p**3 / (p**5 + p**3)
    assert counts["push"] == pytest.approx(posterior + 2 * (1 - posterior))


def test_reestimation_without_ambiguity_gives_relative_frequencies_and_never_lowers_the_likelihood():
    plain = Grammar.uniform(Library())
    programs = [parse("(push (add (connect identity)))"), parse("(push identity)")]
    once = reestimate(plain, programs, pseudocount=1e-12)
    assert math.exp(once.log_probabilities["push"]) == pytest.approx(2 / 6)
    assert math.exp(once.log_probabilities["add"]) == pytest.approx(1 / 6)
    ambiguous = Grammar.uniform(Library({"fn_0": FN_0, "fn_1": "(add #0)"}))
    values = [expected_counts(ambiguous, programs)[1]]
    for _ in range(5):
        ambiguous = reestimate(ambiguous, programs, pseudocount=1e-12)
        values.append(expected_counts(ambiguous, programs)[1])
    assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(values))
    flat = once.flattened(0.5).log_probabilities
    assert max(flat.values()) - min(flat.values()) == pytest.approx(0.5)
    assert sum(map(math.exp, flat.values())) == pytest.approx(1)


@settings(max_examples=25)
@given(st.lists(chains(["push", "add", "connect", "next_port", "pop"]), min_size=2, max_size=8))
def test_compression_never_changes_a_program_or_its_graph(programs):
    library = Library({"fn_0": FN_0})
    learned, rewritten = population.compress(library, programs, iterations=3, max_arity=2)
    for before, after in zip(programs, rewritten, strict=True):
        assert learned.expand(after) == library.expand(before)
        assert graphs.run(learned, after) == graphs.run(library, before)
        assert after.size <= before.size
    assert [learned.bodies["fn_0"]] == [library.bodies["fn_0"]]
    bodies = [learned.expand(body) for body in learned.bodies.values()]
    assert len(set(bodies)) == len(bodies)  # nothing is invented twice


def test_an_invention_made_again_is_the_earlier_one():
    programs = [
        parse("(push (add (connect (next_port (push (add (connect identity)))))))"),
        parse("(push (add (connect (move identity))))"),
    ]
    learned, rewritten = population.compress(Library({"fn_0": FN_0}), programs, iterations=1, max_arity=2)
    assert list(learned.bodies) == ["fn_0"]
    assert [str(term) for term in rewritten] == ["(fn_0 (next_port (fn_0 identity)))", "(fn_0 (move identity))"]


def search(**changes) -> population.Search:
    base = {"population": 3, "programs": 10000, "max_nodes": 16, "max_edges": 24, "pseudocount": 0.001, "max_range": 0.5}
    return population.Search(**(base | {"iterations": 3, "max_arity": 2} | changes))


def test_a_population_is_filled_with_different_graphs_and_the_lightest_programs():
    library, members, reports = population.refill(Library({"fn_0": FN_0}), [], search())
    assert len(members) == 3
    classes = graphs.Classes()
    assert len({classes.of(member.state) for member in members}) == 3
    assert all(member.state.valid and member.state == graphs.run(library, member.term) for member in members)
    assert sum(report["new"] for report in reports) == 3
    described = json.loads(json.dumps([population.describe(library, member) for member in members]))
    restored = list(population.restore(library, described))
    assert [member.term for member in restored] == [member.term for member in members]
    assert [member.origin for member in restored] == [0, 1, 2]
    again = population.refill(Library({"fn_0": FN_0}), [], search())
    assert [str(member.term) for member in again[1]] == [str(member.term) for member in members]
    assert again[2] == reports
    heavy = population.Individual(
        parse("(next_port (prev_port (fn_0 identity)))"), graphs.run(library, parse("(fn_0 identity)")), 5
    )
    (light,), report = population.explore(Library({"fn_0": FN_0}), [heavy], search(population=1, programs=2000))
    assert (str(light.term), light.origin, light.changed, report["replaced"]) == ("(fn_0 identity)", 5, False, 1)
    # The same edge at another port: isomorphic, but not the same to a network.
    heavy = replace(heavy, state=graphs.run(library, parse("(next_port (fn_0 identity))")))
    ((light,), _) = population.explore(Library({"fn_0": FN_0}), [heavy], search(population=1, programs=2000))
    assert (light.origin, light.changed) == (5, True)
    with pytest.raises(ValueError, match="the population has 0 of 3"):
        population.refill(Library(), [], search(programs=50))


def test_graphs_of_the_largest_size_count():
    members, _ = population.explore(Library({"fn_0": FN_0}), [], search(programs=2000, max_nodes=2, max_edges=1))
    assert [(len(member.state.nodes), len(member.state.edges)) for member in members] == [(2, 1)]


# Networks.


def graph_problem(model: str = "graph_structured", **changes) -> Problem:
    """Small networks on small puzzles, and three graphs: an edge, a path, and three nodes with a double edge."""
    members, about = raven_task.build(
        None, defaults("tasks.raven") | {"train_puzzles": 24, "validation_puzzles": 16, "image_size": 48}
    )
    programs = ["(push (add (connect identity)))", "(push (add (connect (next_port (push (add (connect identity)))))))"]
    programs += ["(push (add (connect (next_port (connect (next_port (add (connect identity))))))))"]
    library = Library()
    population_ = [
        population.describe(library, population.Individual(term, graphs.run(library, term))) for term in map(parse, programs)
    ]
    small = {"patch": 8, "width": 8, "residual_blocks": 1, "depth": 1, "heads": 2, "head_width": 4, "hidden_width": 8}
    small |= {"features": 32, "max_nodes": 6, "max_edges": 8} if model == "graph_structured" else {}
    base = {"batch_size": 4, "steps": 6, "record_every": 3, "curve_examples": 16, "clip": None, "learning_rate": 0.01}
    return Problem(
        task="raven",
        about=about | {"task": "raven", "population": population_, "library": [], "explorations": []},
        splits={
            name: PuzzleSplit(np.stack([np.asarray(image) for image in member["image"]]), member["label"], "cpu")
            for name, member in members.items()
        },
        model_name=model,
        model=plugins.load(Model, f"models.{model}"),
        model_parameters=defaults(f"models.{model}") | small | changes,
        regularizer=None,
        regularizer_parameters={},
        settings=defaults("training.settings") | base,
        device="cpu",
    )


def trained(problem: Problem, seeds) -> list[State]:
    states = [fresh_state(problem, seed, 0.0) for seed in seeds]
    train_runs(problem, states, measure)
    return states


def forward(problem: Problem, seed: int, weights: dict | None = None) -> torch.Tensor:
    """Scores (B, classes) of one network on the first puzzles."""
    weights = weights or initial_weights(problem, seed)
    tensors = {name: tensor[None] for name, tensor in (weights | buffers(problem, seed)).items()}
    batch = problem.splits["validation"].batch(torch.arange(5)[None])
    return problem.model.forward(problem.model_parameters, tensors, batch, silent_tap)[0]


def test_the_graph_network_equals_message_passing_written_out():
    problem = graph_problem()
    for seed in range(3):
        weights = initial_weights(problem, seed)
        graph = problem.about["population"][seed]["graph"]
        batch = problem.splits["validation"].batch(torch.arange(5)[None])
        packed_weights = {name: tensor[None] for name, tensor in weights.items()}
        features = pixel_shuffle_transformer.encode(problem.model_parameters, packed_weights, batch)[0]
        features = features @ weights["features.weight"] + weights["features.bias"]
        elements, width = len(graph["nodes"]) + len(graph["edges"]), features.shape[1]
        short = width // elements
        pieces = list(features.split([width - short * (elements - 1)] + [short] * (elements - 1), 1))
        rates = torch.tensor([10000 ** (-k / (width // 4 - 1)) for k in range(width // 4)])

        def element(ident, column, pieces=pieces, rates=rates, width=width):
            tiled = pieces[ident].repeat(1, width)[:, :width]
            return tiled + torch.cat(
                [(ident * rates).sin(), (ident * rates).cos(), (column * rates).sin(), (column * rates).cos()]
            )

        hidden = {node: element(node, 0) for node in graph["nodes"]}
        for layer in range(problem.model_parameters["layers"]):
            received = {node: value.clone() for node, value in hidden.items()}
            for ident, left, right, port in graph["edges"]:
                edge = element(ident, port + 1)
                received[left] = received[left] + (hidden[right] + edge).relu()
                received[right] = received[right] + (hidden[left] + edge).relu()
            hidden = {
                node: value @ weights[f"message{layer}.weight"] + weights[f"message{layer}.bias"]
                for node, value in received.items()
            }
        mean = torch.stack(list(hidden.values())).mean(0)
        logit = mean @ weights["output.weight"] + weights["output.bias"]
        scores = forward(problem, seed)
        torch.testing.assert_close(scores[:, 1:], logit, atol=1e-5, rtol=1e-4)
        assert not scores[:, 0].any()


def test_filling_up_changes_no_score_and_a_graph_that_is_too_large_is_refused():
    small, large = graph_problem(), graph_problem(max_nodes=10, max_edges=20)
    for seed in range(3):
        torch.testing.assert_close(forward(small, seed), forward(large, seed))
    with pytest.raises(ValueError, match="has 3 nodes and 2 edges; the model allows 2 and 8"):
        buffers(graph_problem(max_nodes=2), 1)
    with pytest.raises(ValueError, match="programs 0 to 2: there is none for seed 3"):
        buffers(small, 3)


def test_chunks_cover_the_feature_vector_and_the_first_takes_the_rest():
    rows = graph_structured.chunks(3, 8)
    assert rows.tolist() == [[0, 1, 2, 3, 0, 1, 2, 3], [4, 5, 4, 5, 4, 5, 4, 5], [6, 7, 6, 7, 6, 7, 6, 7]]


def test_gather_and_its_gradient():
    index = torch.tensor([[0, 2, 2, 1], [1, 1, 0, 0]])
    users = torch.tensor([[[0, 4], [3, 4], [1, 2]], [[2, 3], [0, 1], [4, 4]]])
    values = torch.randn(2, 3, 3, dtype=torch.double, requires_grad=True)
    assert torch.equal(gather(values, index, users)[1], values[1][:, index[1]])
    assert torch.autograd.gradcheck(lambda tensor: gather(tensor, index, users), [values])


def test_the_encoder_equals_pytorch_modules():
    problem = graph_problem(model="pixel_shuffle_transformer")
    weights, options = initial_weights(problem, 0), problem.model_parameters
    batch = problem.splits["validation"].batch(torch.arange(5)[None])
    functional = torch.nn.functional
    x = functional.pixel_unshuffle(batch.images[0], 8)
    x = functional.conv2d(x, weights["patch.weight"].T[:, :, None, None], weights["patch.bias"])
    inner = functional.conv2d(x, weights["block0.convolution.weight"], padding=1)
    inner = functional.layer_norm(inner, (8, 6, 6), weights["block0.norm.weight"], weights["block0.norm.bias"])
    inner = functional.gelu(functional.conv2d(inner, weights["block0.first.weight"].T[:, :, None, None]))
    x = x + functional.conv2d(inner, weights["block0.second.weight"].T[:, :, None, None])
    row, column = np.divmod(np.arange(36), 6)
    rates = 10000.0 ** -np.arange(2)
    place = np.concatenate([of(axis[:, None] * rates) for axis in (column, row) for of in (np.sin, np.cos)], 1)
    x = x.flatten(2).transpose(1, 2) + torch.from_numpy(place).float()
    inner = functional.layer_norm(x, (8,), weights["layer0.attention_norm.weight"], weights["layer0.attention_norm.bias"])
    attention = torch.nn.MultiheadAttention(8, options["heads"], bias=False, batch_first=True)
    attention.load_state_dict(
        {"in_proj_weight": weights["layer0.attention_in.weight"].T, "out_proj.weight": weights["layer0.attention_out.weight"].T}
    )
    x = x + attention(inner, inner, inner)[0]
    inner = functional.layer_norm(x, (8,), weights["layer0.norm.weight"], weights["layer0.norm.bias"])
    inner = functional.gelu(inner @ weights["layer0.first.weight"] + weights["layer0.first.bias"])
    x = (x + inner @ weights["layer0.second.weight"] + weights["layer0.second.bias"]).mean(1)
    logit = x @ weights["output.weight"] + weights["output.bias"]
    torch.testing.assert_close(forward(problem, 0)[:, 1:], logit.detach(), atol=1e-5, rtol=1e-4)


def test_dropout_drops_its_share_scales_the_rest_and_spares_evaluation():
    def tap(name, values, mask):
        return values

    values = torch.ones(3, 50000)
    assert dropout(tap, values, 0.3) is values
    tap.noise = lambda shape: torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))
    dropped = dropout(tap, values, 0.3)
    assert dropped.unique().tolist() == [0.0, pytest.approx(1 / 0.7)]
    assert (dropped == 0).float().mean().item() == pytest.approx(0.3, abs=0.005)
    plain, noisy = (trained(graph_problem(dropout=rate), [1])[0].tensors["weights"] for rate in (0.0, 0.3))
    assert not torch.equal(plain, noisy)


# Generations.


def write_metrics(folder: Path, seed: int, accuracy: float | str, loss: float | str, diverged: int = 0) -> Path:
    path = folder / f"t/m/none/lambda=0/seed={seed}/metrics.csv"
    path.parent.mkdir(parents=True)
    rows = (
        f"train,diverged,{diverged}\ntrain,accuracy,{accuracy}\ntrain,loss,{loss}\nvalidation,accuracy,1\nprogram,is identity,1\n"
    )
    path.write_text("split,metric,value\n" + rows)
    return path


def test_networks_are_ranked_by_training_accuracy_then_loss_and_diverged_ones_are_last(tmp_path):
    values = [(0.5, 0.1), (0.9, 0.3), (0.9, 0.2), ("nan", "nan"), (0.7, 0.9)]
    paths = [write_metrics(tmp_path, seed, *value, diverged=int(seed == 3)) for seed, value in enumerate(values)]
    assert raven_evolved.rank(paths) == [2, 1, 4, 0, 3]
    paths[0].write_text("split,metric,value\n")
    with pytest.raises(ValueError, match="holds no accuracy"):
        raven_evolved.rank(paths)


CONFIGS = ("config.yaml", "studies/synthesized_networks.yaml")


def configured(change: dict | None = None) -> Configuration:
    return Configuration(merged(read(*CONFIGS), change or {}), SCHEMA)


def test_a_series_stands_for_its_tasks_and_a_generation_is_built_from_the_one_before():
    configuration = configured()
    names = [name for name in configuration.config["tasks"] if name.startswith("raven_evolved")]
    assert names == [f"raven_evolved_loop{loop}_generation{g}" for loop in range(3) for g in (1, 2, 3)]
    assert configuration.built_from("raven") == ([], [])
    assert configuration.built_from(names[0]) == (["raven"], [])
    splits, runs = configuration.built_from(names[1])
    assert splits == ["raven", names[0]]
    assert runs == [Run(names[0], "graph_structured", "none", 0.0, seed) for seed in range(16)]
    assert configuration.parameters("tasks", names[4])["generation"] == 2
    assert configuration.config["pack_size"][names[4]] == configuration.config["pack_size"]["raven_evolved"]
    # Options that the module declares after the generation stand behind it in names.
    wide = configured({"tasks": {"raven_evolved": {"series": {"generation": 2, "population": [8, 16]}}}})
    splits, runs = wide.built_from("raven_evolved_loop0_generation2_population8")
    assert (splits[1], len(runs)) == ("raven_evolved_loop0_generation1_population8", 8)
    sizes = configured({"pack_size": {"cpu": {names[4]: 1}}}).config["pack_size"]
    assert (sizes[names[3]], sizes[names[4]]) == (sizes["raven_evolved"], 1)
    turned = read(*CONFIGS)
    turned["tasks"]["raven_evolved"]["series"] = {"generation": 3, "loop": [0, 1, 2]}
    assert list(Configuration(turned, SCHEMA).config["tasks"]) == list(configuration.config["tasks"])
    last = f"results/runs/{names[2]}/graph_structured/none/lambda=0/seed=0/metrics.csv"
    wanted = targets.wanted_runs(configuration, [last])
    assert {run.task for run in wanted} == set(names[:3])
    assert len(wanted) == 16 + 16 + 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tasks": {"raven_evolved": {"puzzles": "ravne"}}}, "unknown task 'ravne'; did you mean 'raven'"),
        ({"tasks": {"raven_evolved": {"series": {"loop": [0], "generation": [2]}}}}, "generation1', which is not configured"),
        ({"tasks": {"raven": {"target": "constant_colour"}}}, "tasks.raven.target"),
        ({"tasks": {"raven": {"training": {"influence_examples": 16}}}}, "training.influence_examples"),
        ({"tasks": {"raven_evolved": {"series": {"loop": 0}}}}, "tasks.raven_evolved.series.loop"),
        ({"tasks": {"raven_evolved": {"max_nodes": 99}}}, "max_nodes"),
    ],
)
def test_wrong_options_stop_before_any_job(change, problem):
    def start():
        return targets.wanted_runs(configured(change), [])

    with pytest.raises(ConfigurationError, match=problem):
        start()


# Figures and the workflow.


TINY = {
    "device": "cpu",
    "tasks": {
        "raven": {
            "train_puzzles": 32,
            "validation_puzzles": 40,
            "image_size": 48,
            "training": (short := {"steps": 4, "batch_size": 4, "record_every": 2, "curve_examples": 16}),
        },
        "raven_evolved": {
            "series": {"loop": [0], "generation": 2},
            "population": 3,
            "programs": 10000,
            "library": {"fn_0": FN_0},
            "training": short,
        },
    },
    "models": {
        "pixel_shuffle_transformer": (
            narrow := {"width": 8, "residual_blocks": 1, "depth": 1, "heads": 2, "head_width": 4, "hidden_width": 8}
        ),
        "graph_structured": narrow | {"features": 48},
    },
    "studies": {
        "synthesized_networks": {
            "figures": {
                name: {
                    "grids": [
                        *(
                            [{"task": "raven", "model": "pixel_shuffle_transformer", "regularizers": {}, "seeds": 4}]
                            if name in ("synthesized_ranks", "synthesized_correlation")
                            else []
                        ),
                        {"task": "raven_evolved", "model": "graph_structured", "regularizers": {}, "seeds": 3},
                    ]
                }
                for name in ("synthesized_ranks", "synthesized_correlation", "synthesized_library", "synthesized_programs")
            }
        }
    },
}
LIBRARY = "results/figures/synthesized_library.png"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    """The library's figure, and all that it needs, built from nothing."""
    project = Project(tmp_path_factory.mktemp("synthesized"))
    project.snakemake(LIBRARY, overlay=project.overlay(TINY))
    return project


@pytest.mark.workflow
def test_the_loop_builds_and_every_generation_is_a_set_of_ordinary_runs(built):
    results = built.folder / "results"
    for generation in (1, 2):
        task = f"raven_evolved_loop0_generation{generation}"
        about = json.loads((results / f"splits/{task}/task.json").read_text())
        library = Library(dict(about["library"]))
        for seed, member in enumerate(about["population"]):
            folder = results / f"runs/{task}/graph_structured/none/lambda=0/seed={seed}"
            assert json.loads((folder / "run.json").read_text())["status"] == "done"
            state = graphs.run(library, parse(member["program"]))
            assert [list(edge) for edge in state.edges] == member["graph"]["edges"]
    origins = [member["origin"] for member in about["population"]]
    metrics = [
        results / f"runs/raven_evolved_loop0_generation1/graph_structured/none/lambda=0/seed={seed}/metrics.csv"
        for seed in range(3)
    ]
    assert origins == [*raven_evolved.rank(metrics)[:2], None]
    assert len(list((results / "store/entries").glob("*/*"))) == 6
    found = tables.networks(pd.read_csv(results / "tables/synthesized_library.csv"))
    assert found.groupby("generation").size().to_dict() == {1: 3, 2: 3}
    assert found.origin[found.generation == 2].tolist() == [*origins[:2], -1]


@pytest.mark.workflow
def test_a_loop_more_reruns_nothing_and_a_changed_search_reruns_the_generations_after_it(built):
    assert "Nothing to be done" in built.snakemake(LIBRARY, overlay=built.overlay(TINY))
    more = json.loads(json.dumps(TINY))
    more["tasks"]["raven_evolved"]["series"]["loop"] = [0, 1]
    jobs = built.jobs(LIBRARY, overlay=built.overlay(more))
    assert jobs.pop("split") == 2
    new = {
        f"{stage}_raven_evolved_loop1_generation{g}__graph_structured__none": 1 for stage in ("train", "evaluate") for g in (1, 2)
    }
    assert jobs == new | {"aggregate": 1, "plot": 1}
    later = json.loads(json.dumps(TINY))
    later["tasks"]["raven_evolved"]["series"]["generation"] = 3
    jobs = built.jobs(LIBRARY, overlay=built.overlay(later))
    assert jobs.pop("split") == 1
    assert set(jobs) == {
        f"{stage}_raven_evolved_loop0_generation3__graph_structured__none" for stage in ("train", "evaluate")
    } | {
        "aggregate",
        "plot",
    }


@pytest.mark.workflow
def test_a_generation_built_again_has_the_same_bytes(built):
    overlay = built.overlay(TINY)
    task = "results/splits/raven_evolved_loop0_generation2/task.json"
    run = "results/runs/raven_evolved_loop0_generation2/graph_structured/none/lambda=0/seed=1/weights.safetensors"
    before = built.read(task, run)
    entries = [*(built.folder / "results/store/entries").rglob("*.safetensors")]
    assert entries
    for path in entries:
        path.unlink()
    built.snakemake(LIBRARY, "--force", overlay=overlay)
    built.snakemake("results/splits/raven_evolved_loop0_generation2", "--force", overlay=overlay)
    (built.folder / run).unlink()
    built.snakemake(run, overlay=overlay)
    assert built.read(task, run) == before


def table(baseline: int = 8, loops: int = 2) -> pd.DataFrame:
    """A table of made-up accuracies: a baseline and two generations of four programs."""
    source = np.random.default_rng(0)
    programs = ["(fn_0 identity)", "(fn_0 (next_port (fn_0 identity)))", "(fn_0 (next_port (connect identity)))"]
    programs += ["(fn_0 (next_port (add (connect identity))))"]
    rows = []

    def add(task, seed, entries):
        rows.extend((task, "m", "none", 0.0, seed, *entry) for entry in entries)

    def both(train, validation):
        loss = ("train", "loss", 1 - train)
        return [("train", "accuracy", train), loss, ("validation", "accuracy", validation), ("train", "diverged", 0)]

    reference = [("reference", "majority class", 0.58), ("reference", "shape in shape", 0.73)]
    for seed in range(baseline):
        add("raven", seed, [*both(0.9 + 0.01 * seed, 0.67 + 0.01 * (seed % 2)), *reference])
    for loop, generation, seed in itertools.product(range(loops), (1, 2), range(4)):
        train = 0.7 + 0.05 * seed + 0.01 * source.random()
        numbers = {
            "size": 2,
            "mass": 4,
            "nodes": 2 + seed,
            "edges": 1 + seed,
            "origin": seed - 2 if generation == 2 and seed > 1 else -1,
            "changed": int(loop == 1 and generation == 2 and seed == 3),
        }
        entries = [("program", name, value) for name, value in numbers.items()] + [("program", f"is {programs[seed]}", 1)]
        add(
            f"raven_evolved_loop{loop}_generation{generation}",
            seed,
            [*both(train, train - 0.1), *reference, *entries, ("library", f"fn_0 = {FN_0}", 0)],
        )
    return pd.DataFrame(rows, columns=["task", "model", "regularizer", "lambda", "seed", "split", "metric", "value"])


def test_captions_state_the_numbers_of_the_table():
    import matplotlib

    matplotlib.use("Agg")
    captions = {}
    for name in ("ranks", "correlation", "library", "programs"):
        module = import_module(f"compositional.figures.synthesized_{name}")
        figure, captions[name] = module.draw(table(), defaults(f"figures.synthesized_{name}"))
        matplotlib.pyplot.close(figure)
    assert "majority class 0.580, shape in shape 0.730" in captions["ranks"]
    assert "baseline, 8 runs: train 0.935 (sd 0.024), validation 0.675 (sd 0.005), greatest 0.680" in captions["ranks"]
    rows = table().query("split == 'validation'").set_index("task").value
    before, after = rows["raven"], pd.concat([rows[f"raven_evolved_loop{loop}_generation1"] for loop in (0, 1)])
    test = stats.ttest_ind(after, before, equal_var=False)
    assert (
        f"{after.mean() - 0.675:.3f} against the baseline's mean (Welch's test over networks, p = {test.pvalue:.2g})"
        in captions["ranks"]
    )
    assert "train minus validation 0.260; selected" in captions["ranks"]
    # Two loops of 4 networks: 3 + 3 degrees of freedom against 7.
    within = after.groupby(level=0).var().mean()
    assert f"F = {within / before.var():.2f} (6 and 7 degrees of freedom, one-sided p = " in captions["ranks"]
    above = "8 of 8 networks are above majority class; 2 of 8 networks are above shape in shape"
    assert captions["ranks"].count(above) == 2
    assert "generation 1: r = 1.000" in captions["correlation"]
    assert "kept graphs trained again, 3 pairs of trainings (3 graphs; 1 others are left out" in captions["correlation"]
    assert "times the baseline's, taken as given" in captions["ranks"]
    assert "minus the baseline's mean, taken as given, " in captions["ranks"]
    assert f"loop 0: fn_0 = {FN_0}" in captions["library"]
    assert captions["programs"].count("* loop 1") == 4
    # Seeds 0 to 7 and whether they are odd: r = 2 / sqrt(42 * 2); tanh(0.2218 -+ 1.96 / sqrt(5)).
    assert "* baseline, 8 runs: r = 0.22, 95 % interval -0.57 to 0.80 (Fisher)" in captions["correlation"]


def test_correlations_are_unknown_of_two_pairs_and_where_nothing_varies():
    x, y = pd.Series([1.0, 2.0, 3.0]), pd.Series([1.0, 2.0, 2.0])
    assert tables.correlation(x, y) == pytest.approx(np.sqrt(3) / 2)  # 1 / sqrt(2 * 2/3)
    assert np.isnan(tables.correlation(x[:2], y[:2]))
    assert np.isnan(tables.correlation(x, pd.Series([0.1, 0.1, 0.1])))


@pytest.mark.parametrize("name", ["ranks", "correlation"])
def test_of_one_seed_no_correlation_and_no_spread_are_stated(name):
    one = table()
    module = import_module(f"compositional.figures.synthesized_{name}")
    figure, caption = module.draw(one[one.seed == 0], defaults(f"figures.synthesized_{name}"))
    shown = [text.get_text() for text in figure.findobj(Text)]
    assert not [text for text in (caption, *shown) if "nan" in text]


def test_a_graph_that_is_kept_twice_is_counted_once():
    columns = ["loop", "generation", "seed", "before", "origin"]
    pairs = pd.DataFrame([(0, 2, 0, 1, 5.0), (0, 3, 1, 2, 0.0), (0, 3, 2, 2, 7.0), (1, 3, 1, 2, 0.0)], columns=columns)
    assert synthesized_correlation._graphs(pairs) == 3  # seed 0 of loop 0's generation 2 lives on as seed 1 of generation 3


def test_kept_graphs_are_correlated_within_their_loop():
    kept = table(loops=3)
    later = kept.task.str.endswith("generation2")
    kept.loc[later & (kept.metric == "origin"), "value"] = kept.seed[later]
    kept.loc[kept.metric == "changed", "value"] = 0
    loop = kept.task.str.extract(r"loop(\d)", expand=False).astype(float)
    kept.loc[later & (kept.metric == "accuracy"), "value"] -= 0.1 * loop[later]  # over all loops r is lower
    _, caption = synthesized_correlation.draw(kept, {})
    assert "12 pairs of trainings (12 graphs; 0 others" in caption
    assert "within a loop: training accuracy 0.99" in caption


def test_what_training_again_changes():
    kept = table()
    for split, less in (("train", 0), ("validation", 0.1)):
        own = (kept.split == split) & (kept.metric == "accuracy") & (kept.task != "raven")
        kept.loc[own, "value"] = 0.7 + 0.05 * kept.seed[own] - less
    _, caption = synthesized_correlation.draw(kept, {})
    # Seeds 2 and 3 are what seeds 0 and 1 were: 0.1 more. New graphs are seeds 0 and 1: 0.6 and 0.65.
    assert "training accuracy changes by 0.100 ± 0.000, validation accuracy by 0.100 ± 0.000 (means over loops)" in caption
    assert "new graphs of the same generations 0.625 ± 0.000" in caption
    # Kept ones reach 0.725 in loop 0 and, one of them being left out, 0.7 in loop 1.
    assert "difference 0.088 ± 0.159" in caption or "difference 0.087 ± 0.159" in caption


def test_what_counts_as_selected_is_what_the_loop_selects():
    group = pd.DataFrame({"train": [0.9, 0.8, 0.8, 0.7], "train_loss": [0.1, 0.5, 0.3, 0.6], "seed": range(4)})
    assert synthesized_ranks._half(group, 0.5).seed.tolist() == [0, 2]  # a tie goes to the smaller loss, as in `rank`


def test_the_same_graph_in_two_loops():
    found = pd.DataFrame(
        {
            "generation": [1] * 8 + [2],
            "loop": [0, 0, 0, 0, 1, 1, 1, 1, 0],
            "program": [*"abcd", *"dcbx", "a"],
            "train": [0.9, 0.8, 0.7, 0.6, 0.5, 0.6, 0.7, 0.1, 0.2],
        }
    )
    assert synthesized_correlation._between_loops(found, "train") == [pytest.approx(1)]  # over b, c and d
    assert synthesized_correlation._between_loops(found[found.loop == 0], "train") == []


def test_the_layout_rule_is_a_reference_of_binary_targets_alone():
    member = Dataset.from_dict({"label": [0, 1, 2, 2], "matrix_type": ["shape_in_shape", "x", "x", "x"]})
    assert raven_task.references(member, binary=False) == {"majority class": 0.5}
    member = Dataset.from_dict({"label": [1, 0, 1, 0], "matrix_type": ["shape_in_shape", "x", "x", "x"]})
    assert raven_task.references(member, binary=True) == {"majority class": 0.5, "shape in shape": 0.75}
