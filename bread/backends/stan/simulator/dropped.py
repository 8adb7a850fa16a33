"""Terms that a simulator leaves out: constants, which change no law where every draw has them alike.

Under a condition or in a loop that depends on parameters or outcomes, a constant weighs one part of the law against
another: ``if (mu < 0) target += -2;`` makes negative values seven times less likely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.refusals import quote, refuse
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, nodes

_WAY_OUT = (
    "Take it out of the condition or the loop, or write the law as densities of the variables themselves. Or pass "
    "simulator=: a Stan program or a Python function that draws parameters and data."
)


def headers(controls: Sequence[Node]) -> list[Node]:
    """Return the conditions and loop bounds of ``if``, ``while`` and ``for`` statements."""
    found: list[Node] = []
    for control in controls:
        found += nodes(control)[:1] if control.data in ("if_", "while_") else nodes(control)[:-1]
    return found


def refuse_dropped(
    flow: Dataflow,
    source: Source,
    is_drawn: Callable[[Variable], bool],
    statement: Node,
    controls: Sequence[Node],
    term: Node,
) -> None:
    """Refuse to leave out a constant term unless every draw has it alike.

    Parameters
    ----------
    flow : Dataflow
    source : Source
    is_drawn : callable
        Whether a variable is a parameter or an outcome.
    statement : Node
        What adds the term.
    controls : sequence of Node
        Conditions and loops around it.
    term : Node

    Raises
    ------
    RefusedError
        Whether, or how often, it is added depends on parameters or outcomes.
    """
    names = sorted({variable.name for variable in flow.depends(*headers(controls)) if is_drawn(variable)})
    if not names:
        return
    raise refuse(
        source,
        statement,
        f"whether the constant `{quote(source, term)}` is added, or how often, depends on {', '.join(names)}: that is "
        "a part of the law which no draw stands for.",
        _WAY_OUT,
    )
