"""Does each prior integrate to one? Each free variable's density given its parents, against its own random draws.

A constant that the density lacks does not change the posterior. It is named, and taken out of the log weights along
reference paths, where it does not cancel, so that evidences along different paths are the same number. One that varies
with the parents does change the posterior: a bug. So are draws that follow another law than the density.

Only nodes whose integral the backend does not know are looked at; where there are none, this costs nothing. Replicates
are drawn, and densities evaluated, in the process where the model was opened.
"""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray, IntArray, Model, Node
from bread.backends.nodes import MOST_DEPENDENT
from bread.errors import BreadError, UnsupportedModelError
from bread.jobs.interrupts import interruptible
from bread.running.state.ledger import Ledger
from bread.running.state.prior_integral_results import PriorIntegral, PriorIntegrals
from bread.running.state.results import CheckResult
from bread.seeds import Purpose, seed_sequence
from bread.statistics.exactness.normalisation import DRAWS_A_DIMENSION, Normalisation, log_constants

PHASE = "prior integrals"
DRAWS = 4000  # each takes 0.2 ms on the way to unconstrained coordinates
SLOW_DRAWS = 2000  # of whole simulations, where the node cannot be drawn many times at once
PARENT_STATES = 4  # where a variable has parents; they share the draws
FIRST_PARTS = 5  # of many independent ones: all are looked at where these have a constant
MOST_PARTS = 100
MOST_NUMBERS = 20_000_000  # coordinates of all states of one evaluation
NAMED = 0.02  # nats of one part
N_MIXED = 20  # states that show whether parts are independent
EVALUATIONS = 3  # of a density, about as dear as a gradient
_DRAWN, _PROPOSED, _SIMULATED, _PARENTS = range(4)  # streams


def integrate_priors(model: Model, root: int, result: CheckResult, ledger: Ledger) -> None:
    """Integrate the density of every free variable given its parents; ``result.prior_integrals`` keeps it.

    What cannot be integrated is left out with the reason, and the check goes on.
    """
    nodes = [node for node in model.nodes() if node.kind in ("latent", "parameter") and node.log_integral != 0.0]
    if not nodes:
        result.prior_integrals = PriorIntegrals()
        return
    with ledger.phase("integrating priors", PHASE):
        result.prior_integrals = prior_integrals(model, nodes, root)
    ledger.count(PHASE, result.prior_integrals.n_evaluations // EVALUATIONS)


def prior_integrals(model: Model, nodes: list[Node], root: int) -> PriorIntegrals:
    """Integrate the densities of these nodes."""
    found: list[PriorIntegral] = []
    left_out: dict[str, str] = {}
    n_evaluations = 0
    for place, node in enumerate(nodes):
        if node.log_integral is not None:
            found.append(PriorIntegral(node.name, (Normalisation(node.log_integral, 0.0, 0),), is_known=True))
            continue
        if node.refusal:
            left_out[node.name] = node.refusal
            continue
        integrator = _Integrator(model, node, root, place)
        try:
            with interruptible():
                found.append(integrator.run())
        except BreadError as error:
            left_out[node.name] = str(error)
        except Exception as error:  # a user's density or draws may raise anything; the check itself says what it means
            left_out[node.name] = f"{type(error).__name__}: {error}"
        n_evaluations += integrator.n_evaluations
    return PriorIntegrals(tuple(found), left_out, n_evaluations)


class _Integrator:
    """Integrates one node."""

    def __init__(self, model: Model, node: Node, root: int, place: int) -> None:
        self._model, self._node, self._root, self._place = model, node, root, place
        positions = model.info.layout.positions
        self._columns: IntArray = np.concatenate([positions[name] for name in node.shapes])
        self.n_evaluations = 0

    def run(self) -> PriorIntegral:
        """Return the integral, at one state of the parents or several."""
        n_states = 1 if self._node.has_no_parents else PARENT_STATES
        states = self._model.simulate(n_states, fixed=None, seed=self._seed(_PARENTS, 0)).states
        self._terms(states[:1])  # what cannot be evaluated is not drawn
        parts = tuple(self._at(state, number, DRAWS // n_states) for number, state in enumerate(states))
        return PriorIntegral(self._node.name, parts)

    def _seed(self, stream: int, number: int) -> np.random.SeedSequence:
        return seed_sequence(self._root, Purpose.PRIOR_INTEGRAL, self._place, stream, number)

    def _terms(self, states: FloatArray) -> FloatArray:
        self.n_evaluations += len(states)
        return self._model.node_log_prior(self._node.name, states)

    # -- draws ------------------------------------------------------------------------------------------------

    def _draws(self, state: FloatArray, number: int, n: int) -> FloatArray:
        """Return states whose node is drawn given the parents in ``state``, shape (n, dim)."""
        n = min(n, self._node.most or n, max(1, MOST_NUMBERS // len(state)))
        seed = self._seed(_DRAWN, number)
        rows = np.repeat(state[None], n, axis=0)
        try:
            made = self._model.replicate(state, self._node.name, n, seed=seed)
        except UnsupportedModelError:
            if not self._node.has_no_parents:
                raise
            rows = rows[: min(n, SLOW_DRAWS)]
            drawn = self._model.simulate(len(rows), fixed=None, seed=self._seed(_SIMULATED, number)).states
            rows[:, self._columns] = drawn[:, self._columns]
            return rows
        values = {key: np.repeat(array, n, axis=0) for key, array in self._model.constrain(state[None]).items()}
        offset = 0
        for key, shape in self._node.shapes.items():
            size = int(np.prod(shape, dtype=np.int64))
            values[key] = made.values[1:, offset : offset + size].reshape(n, *shape)
            offset += size
        rows[:, self._columns] = self._model.unconstrain(values)[:, self._columns]
        return rows

    # -- integrals --------------------------------------------------------------------------------------------

    def _at(self, state: FloatArray, number: int, n: int) -> Normalisation:
        """Return the log integral given the parents in ``state``: of all parts together."""
        rows = self._draws(state, number, n)
        rng = np.random.default_rng(self._seed(_PROPOSED, number))
        blocks = self._blocks(rows, rng)
        size = len(blocks[0])
        if size > min(MOST_DEPENDENT, len(rows) // (2 * DRAWS_A_DIMENSION)):
            raise UnsupportedModelError(f"{size} dependent coordinates are too many to integrate over.")
        some = np.unique(np.linspace(0, len(blocks) - 1, min(len(blocks), FIRST_PARTS)).astype(np.int64)).tolist()
        found = dict(zip(some, self._integrate(rows, blocks, some, rng), strict=True))
        first = found[0]
        if any(abs(one.log_constant) > max(4.0 * one.standard_error, NAMED) for one in found.values()):
            if len(blocks) > MOST_PARTS:
                raise UnsupportedModelError(
                    f"{len(blocks)} elements are too many to integrate each; the first integrates to "
                    f"exp({first.log_constant:.3g})."
                )
            rest = [index for index in range(len(blocks)) if index not in found]
            found |= dict(zip(rest, self._integrate(rows, blocks, rest, rng), strict=True)) if rest else {}
        # parts that were not looked at are taken for normalised, like those beside them
        total = float(sum(one.log_constant for one in found.values()))
        error = float(np.sqrt(sum(one.standard_error**2 for one in found.values())))
        p_value = min(1.0, len(found) * min(one.p_value for one in found.values()))
        return Normalisation(total, error, sum(one.n_zero for one in found.values()), p_value)

    def _blocks(self, rows: FloatArray, rng: np.random.Generator) -> list[IntArray]:
        """Return the coordinates of each independent part: equal blocks, where the terms say so, else all."""
        columns = self._columns
        some = rows[:N_MIXED]
        terms = self._terms(some)
        n_parts = terms.shape[1]
        if n_parts < 2 or len(columns) % n_parts:
            return [columns]
        blocks = np.split(columns, n_parts)
        mixed, moved = some.copy(), np.asarray(rng.random(n_parts) < 0.5)
        moved[0], moved[1] = True, False
        for block in np.array(blocks)[moved]:
            mixed[:, block] = some[::-1][:, block]
        expected = np.where(moved, terms[::-1], terms)
        is_local = np.allclose(self._terms(mixed), expected, rtol=1e-6, atol=1e-8, equal_nan=True)
        return blocks if is_local else [columns]

    def _integrate(
        self, rows: FloatArray, blocks: list[IntArray], chosen: list[int], rng: np.random.Generator
    ) -> list[Normalisation]:
        """Return the log integrals of the chosen blocks."""
        is_whole = len(blocks) == 1

        def log_densities(points: list[FloatArray]) -> FloatArray:
            at = rows[: len(points[0])].copy()
            for index, values in zip(chosen, points, strict=True):
                at[:, blocks[index]] = values
            terms = self._terms(at)
            terms = terms.sum(axis=1, keepdims=True) if is_whole else terms[:, chosen]
            return np.where(np.isnan(terms), -np.inf, terms)  # where it is not a number there is no density

        return log_constants([rows[:, blocks[index]] for index in chosen], log_densities, rng)
