"""Chains of numbers and operators, written without spaces as in "3+4*2", and what they evaluate to. No download."""

from __future__ import annotations

from dataclasses import dataclass

FILES: dict = {}
SYMBOLS = "0123456789+-*/"
COMMUTATIVE = {"+", "*"}


@dataclass(frozen=True)
class Expression:
    """Numbers with operators between them, one fewer."""

    numbers: tuple[int, ...]
    operators: str

    def __str__(self) -> str:
        return "".join(f"{number}{operator}" for number, operator in zip(self.numbers, f"{self.operators} ", strict=True)).strip()

    @property
    def value(self) -> float:
        """`*` and `/` before `+` and `-`, and otherwise from left to right."""
        terms = [float(self.numbers[0])]
        for operator, number in zip(self.operators, self.numbers[1:], strict=True):
            if operator == "*":
                terms[-1] *= number
            elif operator == "/":
                terms[-1] /= number
            else:
                terms.append(number if operator == "+" else -number)
        return sum(terms)

    @property
    def steps(self) -> set[tuple[int, str, int]]:
        """Every operator with the numbers on both sides of it."""
        return set(zip(self.numbers, self.operators, self.numbers[1:], strict=False))

    @property
    def mirrored(self) -> Expression:
        """Read from its end: of the same value where all operators are commutative."""
        return Expression(self.numbers[::-1], self.operators[::-1])
