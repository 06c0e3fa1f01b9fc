"""The decoder with input feeding computes what its equations say, and so does its gradient."""

from __future__ import annotations

import pytest
import torch

from compositional.layers import looking, lstm
from compositional.layers.input_feeding import input_feeding
from compositional.layers.ragged import Steps

RUNS, ROWS, WORDS, WIDTH = 2, 8, 5, 8
STEPS = Steps([6] * 4 + [3] * 4, "cpu")
NAMES = ("gates", "hidden", "carried", "keys", "values", "weight", "bias")
SCORING = ("query_weight", "query_bias", "score")  # of additive attention


def inputs() -> dict[str, torch.Tensor]:
    """Random inputs; all that are in NAMES or SCORING need a gradient."""
    torch.manual_seed(0)
    count = sum(STEPS.sizes)
    shapes = {
        "gates": (count, 4 * WIDTH),
        "hidden": (ROWS, WIDTH),
        "cell": (ROWS, WIDTH),
        "decision": (ROWS, WIDTH),
        "carried": (2 * WIDTH, 4 * WIDTH),
        "keys": (ROWS, WORDS, WIDTH),
        "values": (ROWS, WORDS, WIDTH),
        "weight": (2 * WIDTH, WIDTH),
        "bias": (WIDTH,),
        "query_weight": (WIDTH, WIDTH),
        "query_bias": (WIDTH,),
        "score": (WIDTH,),
    }
    # Small enough that steps do not amplify rounding errors.
    found = {name: (0.3 * torch.randn(RUNS, *shape)).requires_grad_(name in NAMES + SCORING) for name, shape in shapes.items()}
    found |= {name: torch.rand(RUNS, count, WIDTH).round() * 2 for name in ("keep_in", "keep_out")}
    blocked = torch.zeros(RUNS, ROWS, 1, WORDS)
    blocked[:, 1, :, 3:] = float("-inf")
    return found | {"blocked": blocked}


def by_equations(of: dict[str, torch.Tensor], additive: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Decisions and attention weights, one run, row and step at a time, with PyTorch's own operations and gradient."""
    decisions, looks = {}, {}
    for run in range(RUNS):
        for row in range(ROWS):
            hidden, cell, decision = (of[name][run, row] for name in ("hidden", "cell", "decision"))
            for place, own in enumerate(STEPS.positions[:, 0].tolist()):
                if own != row:
                    continue
                read = torch.cat([decision * of["keep_in"][run, place], hidden])
                into, keep, out, candidate = (of["gates"][run, place] + read @ of["carried"][run]).chunk(4)
                cell = keep.sigmoid() * cell + into.sigmoid() * candidate.tanh()
                hidden = out.sigmoid() * cell.tanh()
                if additive:
                    query = hidden @ of["query_weight"][run] + of["query_bias"][run]
                    scores = (of["keys"][run, row] + query).tanh() @ of["score"][run]
                else:
                    scores = of["keys"][run, row] @ hidden
                look = (scores + of["blocked"][run, row, 0]).softmax(0)
                seen = torch.cat([hidden, look @ of["values"][run, row]])
                decision = (seen @ of["weight"][run] + of["bias"][run]) * of["keep_out"][run, place]
                decisions[run, place], looks[run, place] = decision, look
    places = range(sum(STEPS.sizes))
    return tuple(
        torch.stack([torch.stack([of[run, place] for place in places]) for run in range(RUNS)]) for of in (decisions, looks)
    )


def at_once(of: dict[str, torch.Tensor], additive: bool = False):
    state, kept = (of["hidden"], of["cell"], of["decision"]), (of["keep_in"], of["keep_out"])
    combined, scoring = (of["weight"], of["bias"]), [of[name] for name in SCORING] if additive else ()
    return input_feeding(
        of["gates"], state, of["carried"], of["keys"], of["values"], of["blocked"], combined, kept, STEPS, scoring
    )


@pytest.mark.parametrize("additive", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_decisions_attention_and_gradients_equal_the_equations(monkeypatch, compiled, additive):
    if not compiled:  # as on a GPU
        for module in (lstm, looking):
            monkeypatch.setattr(module, "is_compiled", lambda values: False)
    of, names = inputs(), NAMES + (SCORING if additive else ())
    expected, found = by_equations(of, additive), at_once(of, additive)[:2]
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, atol=1e-5, rtol=1e-5)
    weighted = [torch.randn_like(one) for one in expected]
    wanted, own = (
        torch.autograd.grad(
            sum((value * weight).sum() for value, weight in zip(side, weighted, strict=True)), [of[n] for n in names]
        )
        for side in (expected, found)
    )
    for name, one, other in zip(names, wanted, own, strict=True):
        torch.testing.assert_close(other, one, atol=1e-4, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}")
        assert one.abs().max() > 1e-2, name


def test_the_state_after_the_last_step_continues_the_sequence():
    of = {name: value.detach() for name, value in inputs().items()}
    whole, _, _ = at_once(of)
    step = Steps([1] * ROWS, "cpu")
    state, found = (of["hidden"], of["cell"], of["decision"]), []
    for now in (slice(0, 8), slice(8, 16)):
        kept = of["keep_in"][:, now], of["keep_out"][:, now]
        combined = of["weight"], of["bias"]
        decisions, _, state = input_feeding(
            of["gates"][:, now], state, of["carried"], of["keys"], of["values"], of["blocked"], combined, kept, step
        )
        found.append(decisions)
    torch.testing.assert_close(torch.cat(found, 1), whole[:, :16], atol=1e-6, rtol=1e-6)


def test_a_second_gradient_is_refused():
    decisions, _, _ = at_once(of := inputs())
    torch.autograd.grad(decisions.sum(), of["bias"], retain_graph=True)
    with pytest.raises(RuntimeError, match="input_feeding: the gradient can be taken once"):
        torch.autograd.grad(decisions.sum(), of["bias"])


def test_a_gradient_of_its_gradient_is_refused():
    decisions, _, _ = at_once(of := inputs())
    with pytest.raises(NotImplementedError, match=r"_InputFeeding\.backward: its result cannot be differentiated"):
        torch.autograd.grad(decisions.sum(), of["bias"], create_graph=True)
