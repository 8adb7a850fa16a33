"""What all mixtures share: a component is chosen by its weight, and weights must sum to one whenever they are used."""

from __future__ import annotations

from bread.backends.stan.language.refusals import refuse
from bread.backends.stan.simulator.draw import Draw, Mode, Writer

# Not categorical_logit_rng: it refuses the log weight of a component whose probability has rounded to 0.
CHOOSE = "categorical_rng(softmax(bread_w))"
_ROUNDING = "1e-6"  # of the log of the sum: far above what rounding leaves, far below what data could tell


def check_sum(what: str) -> str:
    """Return the statement that rejects log weights ``bread_w`` whose exponentials do not sum to one."""
    return f'if (abs(log_sum_exp(bread_w)) > {_ROUNDING}) reject("bread: {what} do not sum to one");'


def refuse_bounded(draw: Draw, writer: Writer) -> None:
    """Refuse a mixture as the prior of a parameter with bounds: what they cut off differs between components."""
    if draw.variable.kind == "parameter" and draw.variable.bounds:
        raise refuse(
            writer.source,
            draw.statement,
            "a mixture as the prior of a bounded parameter has no simulator.",
            "Pass simulator=.",
        )


def refuse_own_elements(draw: Draw, writer: Writer, mode: Mode) -> None:
    """Refuse a mixture whose elements enter the law of others: only mode "draw" is written."""
    if mode != "draw":
        raise refuse(
            writer.source, draw.statement, "an outcome that depends on itself is a mixture.", "Pass simulator=."
        )
