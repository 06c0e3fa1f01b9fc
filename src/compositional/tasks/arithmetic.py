"""The value of an arithmetic expression, read symbol by symbol: the task of an earlier attempt at this project's proposal.

"Compositional Regularization: Unexpected Obstacles in Enhancing Neural Network Generalization" (ICBINB workshop, ICLR 2025) draws
training and test expressions independently, so that training contains nearly all test expressions (`held_out: none`). The other
settings of `held_out` keep test expressions out of training, and the published test set becomes the member "in_distribution".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, islice, product
from pathlib import Path

from datasets import Dataset, DatasetDict

from compositional import randomness
from compositional.datasets.arithmetic_expressions import COMMUTATIVE, SYMBOLS, Expression

KIND = "sequence_regression"
DATASET = "arithmetic_expressions"
PARAMETERS = {
    "smallest": {"type": "integer", "minimum": 1, "default": 1, "description": "smallest number of an expression"},
    "largest": {"type": "integer", "minimum": 1, "default": 9, "description": "largest number of an expression"},
    "operators": {
        "type": "array",
        "uniqueItems": True,
        "minItems": 1,
        "items": {"enum": ["+", "-", "*", "/"]},
        "default": ["+", "*"],
        "description": "operators, all drawn with equal probability; quotients are not rounded",
    },
    "chain": {
        "type": "integer",
        "minimum": 1,
        "maximum": 4,
        "default": 1,
        "description": "maximum number of operators of a training expression; numbers from 1 are drawn with equal probability",
    },
    "held_out": {
        "enum": ["none", "pairs", "unordered_pairs", "recombination", "length"],
        "default": "none",
        "description": "none: test expressions are drawn like training expressions, as published; pairs: some pairs of operands "
        "do not occur with their operator in training; unordered_pairs: these pairs do not occur in the reverse order either; "
        "recombination: in training some first operands occur with every operator but the last one; length: test expressions "
        "have more operators, up to 4",
    },
    "held_out_share": {
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.2,
        "description": "share that is held out: of pairs or, with recombination, of first operands",
    },
    "train_examples": {"type": "integer", "minimum": 1, "default": 1000, "description": "training expressions"},
    "test_examples": {
        "type": "integer",
        "minimum": 1,
        "default": 200,
        "description": "expressions of each evaluation set; held-out expressions of one operator are all tested, each once",
    },
    "draw": {"type": "integer", "minimum": 0, "default": 0, "description": "seed of everything random in the task"},
}
LONGEST = 4  # maximum number of operators of a test expression
_NAMES = {"+": "sum", "-": "difference", "*": "product", "/": "quotient"}
_BY_DESIGN = "drawn independently of the training set, as published"


def _withheld(parameters: dict, numbers: range) -> set[tuple[int, str, int]]:
    """Operands with their operator, (first, operator, second), that may not occur in training expressions.

    Raises:
        ValueError: `held_out` is recombination and there is only one operator.
    """
    operators, kind = parameters["operators"], parameters["held_out"]
    if kind in ("none", "length"):
        return set()
    if kind == "recombination" and len(operators) < 2:
        raise ValueError(
            f"held_out: recombination needs a second operator, with which held-out numbers occur; operators is {operators}"
        )
    source = randomness.generator(randomness.derive("arithmetic", parameters["draw"], "held out"))

    def some(candidates: Sequence) -> list:
        count = max(1, round(parameters["held_out_share"] * len(candidates)))
        return [candidates[place] for place in source.permutation(len(candidates))[:count]]

    if kind == "recombination":
        return set(product(some(numbers), operators[-1], numbers))
    ordered = kind == "pairs"
    pairs = list(product(numbers, numbers) if ordered else combinations_with_replacement(numbers, 2))
    found = {(first, operator, second) for operator in operators for first, second in some(pairs)}
    return found if ordered else found | {(second, operator, first) for first, operator, second in found}


def _columns(expressions: Sequence[Expression], parameters: dict, categories: bool) -> Dataset:
    """A member with the columns input, target and form (the operators), and equivalent if all operators are commutative."""
    columns: dict[str, list] = {
        "input": list(map(str, expressions)),
        "target": [expression.value for expression in expressions],
        "form": [expression.operators for expression in expressions],
    }
    if set(parameters["operators"]) <= COMMUTATIVE:
        columns["equivalent"] = [str(expression.mirrored) for expression in expressions]
    if categories:
        columns["category"] = [
            _NAMES[own] if len(own) == 1 else f"{len(own)} operators"
            for own in (expression.operators for expression in expressions)
        ]
    return Dataset.from_dict(columns)


def _shares(tested: list[Expression], trained: list[Expression]) -> dict[str, float]:
    """Shares of the published test set that are in training, counted in examples and in distinct inputs, for captions."""
    known, distinct = set(trained), set(tested)
    return {
        "examples in training": sum(expression in known for expression in tested) / len(tested),
        "distinct inputs in training": len(known & distinct) / len(distinct),
        "distinct inputs in training per example": len(known & distinct) / len(tested),
    }


def build(raw: Path, parameters: dict) -> tuple[DatasetDict, dict]:
    """Members train, test and, unless `held_out` is none, in_distribution, which is drawn like train. Reads no file.

    Raises:
        ValueError: `smallest` is above `largest`, or with `held_out: length` no test expression can be longer than in training.
    """
    smallest, largest, chain, kind = (parameters[key] for key in ("smallest", "largest", "chain", "held_out"))
    if smallest > largest:
        raise ValueError(f"smallest must be at most largest ({largest}); it is {smallest}")
    if kind == "length" and chain == LONGEST:
        raise ValueError(
            f"held_out: length tests expressions of up to {LONGEST} operators: chain must be below that; it is {chain}"
        )
    numbers, withheld = range(smallest, largest + 1), _withheld(parameters, range(smallest, largest + 1))

    def drawn(member: str, lengths: Sequence[int], wanted: Callable[[Expression], bool]) -> Iterator[Expression]:
        source = randomness.generator(randomness.derive("arithmetic", parameters["draw"], member))
        while True:
            count = source.choice(lengths)
            own = source.choice(numbers, count + 1), source.choice(parameters["operators"], count)
            expression = Expression(tuple(map(int, own[0])), "".join(own[1]))
            if wanted(expression):
                yield expression

    def trained(expression: Expression) -> bool:
        return withheld.isdisjoint(expression.steps)

    lengths, count = range(1, chain + 1), parameters["test_examples"]
    members = {"train": list(islice(drawn("train", lengths, trained), parameters["train_examples"]))}
    if kind != "none":
        members["in_distribution"] = list(islice(drawn("in_distribution", lengths, trained), count))
    if withheld and chain == 1:
        members["test"] = [Expression((first, second), operator) for first, operator, second in sorted(withheld)]
    elif withheld:
        members["test"] = list(islice(drawn("test", lengths, lambda expression: not trained(expression)), count))
    else:
        members["test"] = list(
            islice(drawn("test", lengths if kind == "none" else range(chain + 1, LONGEST + 1), trained), count)
        )
    as_trained = "in_distribution" if "in_distribution" in members else "test"
    disjoint: list[dict] = [{"columns": ["input"], "members": [as_trained], "by_design": _BY_DESIGN}]
    disjoint += [{"columns": ["input"], "members": ["test"]}] if as_trained != "test" else []
    digits = {len(str(number)) for number in (smallest, largest)}
    return DatasetDict({name: _columns(own, parameters, name == "test") for name, own in members.items()}), {
        "in_distribution": "in_distribution" if as_trained == "in_distribution" else "train",
        "disjoint": disjoint,
        "symbols": SYMBOLS,
        "component_width": digits.pop() if len(digits) == 1 else None,
        "references": _shares(members[as_trained], members["train"]),
    }
