"""Programs that grow graphs: one by its text, and random ones."""

from __future__ import annotations

from hypothesis import strategies as st

from compositional.synthesis import graphs
from compositional.synthesis.programs import PRIMITIVES, Library, Term, parse

FN_0 = "(push (add (connect #0)))"


def run(text: str) -> graphs.State:
    return graphs.run(Library(), parse(text))


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
