"""Chains of numbers and operators, written without spaces as in "3+4*2", and their values. No download."""

from __future__ import annotations

from dataclasses import dataclass

FILES: dict = {}
SYMBOLS = "0123456789+-*/"
COMMUTATIVE = {"+", "*"}


@dataclass(frozen=True)
class Expression:
    """Numbers with an operator between each two."""

    numbers: tuple[int, ...]
    operators: str

    def __str__(self) -> str:
        return "".join(f"{number}{operator}" for number, operator in zip(self.numbers, f"{self.operators} ", strict=True)).strip()

    @property
    def value(self) -> float:
        """The value: `*` and `/` before `+` and `-`, otherwise from left to right."""
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
        """Every operator with the numbers on its two sides."""
        return set(zip(self.numbers, self.operators, self.numbers[1:], strict=False))

    @property
    def mirrored(self) -> Expression:
        """The expression in reverse order; it has the same value if all operators are commutative."""
        return Expression(self.numbers[::-1], self.operators[::-1])
