"""Joint draws as states: accepted by the program, and within what its numbers can represent.

A program rejects some states (`reject()`, a declared bound of a transformed parameter, an argument that Stan's checks
refuse): it states its law given that it accepts. A number may also round to the border of its support, or an integer
outcome be too large for Stan's generators. Such draws are made again as a whole, parameters and outcomes together.

Where numbers decide, the kept draws are conditioned: their parameters do not follow the prior, and outcomes do not
follow the likelihood given parameters at which they can be drawn at times. Given the outcomes, the parameters are still
exact draws of the posterior, if outcomes alone decide or no kept ones may come from parameters at which there are none
(`bread.backends.stan.scores` refuses programs where they may). `JointDraws.discarded` counts these draws by what is
known of them. Starts of forward chains are draws of the parameters alone, which no outcome decides upon.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Discarded, FloatArray
from bread.backends.stan.language.places import without_place
from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.native.variables import ManySeeds
from bread.backends.stan.simulation import (
    DerivedDrawError,
    DerivedSimulator,
    Fixed,
    JointDraws,
    JointSimulator,
    NoStateError,
    cannot_hold,
    concatenate_draws,
)
from bread.backends.support.recent import Recent
from bread.errors import DensityError, InvalidArgumentError

MOST_ROUNDS = 200  # of redraws: a program that accepts fewer than one draw in about ten is refused
# Tries without a single accepted draw after which more are vain: with one in thirty the chance is 1e-6.
MOST_VAIN = 400
TIMES_OVER = " times over: "
_OUTCOME_TRIES = 5  # more draws of outcomes at the same parameters, before these count as without outcomes
_LOOKED_AT = 20  # discarded draws of one call that are looked into; the others are taken to be alike
_REDRAW = 20160816  # in the keys of redraws


@dataclass(frozen=True)
class StateDraws:
    """Joint draws as states; what `bread.backends.stan.posterior.StanPosterior` draws the base of its path from.

    Parameters
    ----------
    simulator : JointSimulator
    instance : StanInstance
        The program with the real data: it maps values to states and back, which no outcome changes.
    edged : ndarray of bool, shape (2, dim)
        Coordinates in which the mean score of the prior (first row), of the likelihood (second), need not be zero.
    """

    simulator: JointSimulator
    instance: StanInstance
    edged: NDArray[np.bool_]
    recent: Recent = field(default_factory=Recent, init=False, compare=False, repr=False)

    def draw_states(self, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Return one exact prior draw per seed, shape (len(seeds), dim)."""
        return self._draw(seeds, None, only_parameters=True)[0]

    def draw_states_at_once(self, n: int, seed: SeedSequence) -> FloatArray:
        """Return ``n`` exact prior draws of one seed, shape (n, dim)."""
        return self._draw(ManySeeds(seed, n), None, only_parameters=True)[0]

    def draw_parameters(self, n: int, seed: SeedSequence) -> tuple[FloatArray, JointDraws]:
        """Return the states of ``n`` draws of the parameters alone, and these draws."""
        fresh = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
        return self._draw(fresh.spawn(n), None, only_parameters=True)

    def simulate(self, n: int, fixed: Fixed | None, seed: SeedSequence) -> tuple[FloatArray, JointDraws]:
        """Return ``n`` joint draws and their states; draw i uses child i of ``seed`` alone.

        Raises
        ------
        DensityError
            The program accepts too few draws; the message is that of the first that failed.
        InvalidArgumentError
            The simulator cannot hold a parameter named in ``fixed``.
        """
        unknown = [name for name in fixed or {} if name not in self.simulator.fixable]
        if unknown:
            raise InvalidArgumentError(cannot_hold(unknown[0], self.simulator))
        fresh = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
        return self._draw(fresh.spawn(n), fixed, only_parameters=False)

    def left_out(self, draws: JointDraws, n: int) -> FloatArray:
        """Return up to ``n`` states at which no outcome can be drawn, of the draws that ``draws`` left out."""
        states = []
        for seed in draws.failed[:n]:
            with contextlib.suppress(DensityError):
                joint = self.simulator.draw([seed], None, only_parameters=True)
                if not self._has_outcomes(joint, seed):
                    states.append(self.instance.unconstrain(joint.parameters)[0])
        return np.array([state for state in states if np.isfinite(state).all()]).reshape((-1, self.instance.dim))

    @property
    def _can_hold_all(self) -> bool:
        """Whether outcomes can be drawn anew at given parameters."""
        return set(self.instance.names("parameters")) == set(self.simulator.fixable)

    def _has_outcomes(self, joint: JointDraws, seed: SeedSequence, tries: int = _OUTCOME_TRIES) -> bool:
        """Return whether outcomes can be drawn at these parameters after all: one was too large by chance."""
        if not self._can_hold_all:
            return False
        held = {name: values[0] for name, values in joint.parameters.items()}
        for attempt in range(1, tries + 1):
            with contextlib.suppress(DensityError):
                self.simulator.draw([_of_attempt(seed, -attempt % 2**32)], held)
                return True
        return False

    def _discarded(self, failed: Sequence[SeedSequence], n_unmapped: int, fixed: Fixed | None, why: str) -> Discarded:
        """Return what is known of draws whose generators failed; ``n_unmapped`` others have parameters without a state.

        Draws that the program itself rejects are left out.
        """
        n_parameters = n_outcomes = n_by_chance = 0
        states: list[FloatArray] = []
        looked_at = failed[:_LOOKED_AT]
        for joint, rows in self._made(looked_at, fixed, True) if looked_at else ():
            if isinstance(joint, str):
                n_parameters += len(rows)
                continue
            found, accepted, *_ = self._judge(joint)
            for row in accepted:
                n_outcomes += 1
                has_outcomes = self._has_outcomes(joint.rows(np.array([row])), looked_at[rows[row]], tries=1)
                n_by_chance += has_outcomes or not self._can_hold_all
                states += [] if has_outcomes else [found[row]]
        scale = len(failed) / max(len(looked_at), 1)
        return Discarded(n_unmapped + scale * n_parameters, scale * n_outcomes, scale * n_by_chance, tuple(states), why)

    def _draw(
        self, seeds: Sequence[SeedSequence], fixed: Fixed | None, *, only_parameters: bool
    ) -> tuple[FloatArray, JointDraws]:
        """Draw until every seed has given a draw that the program accepts."""
        kept: list[_Kept] = []
        failed: list[SeedSequence] = []
        remaining, reason, n_made, n_redrawn, n_tried = np.arange(len(seeds)), "", 0.0, 0, 0
        n_unmapped, why = 0, ""
        for attempt in range(MOST_ROUNDS):
            tried = seeds if attempt == 0 else [_of_attempt(seeds[int(row)], attempt) for row in remaining]
            for joint, rows in self._made(tried, fixed, only_parameters):
                if isinstance(joint, str):
                    reason, why, n_made = reason or joint, why or joint, n_made + len(rows)
                    failed += [tried[row] for row in rows]
                    continue
                states, accepted, message, n_lost = self._judge(joint)
                reason, n_made = reason or message, n_made + len(rows) / joint.acceptance
                n_unmapped, why = n_unmapped + n_lost, why or (message if n_lost else "")
                kept.append(_Kept(remaining[rows[accepted]], states[accepted], joint.rows(accepted)))
            done = np.concatenate([np.zeros(0, dtype=np.int64), *(one.rows for one in kept)])
            remaining = np.setdiff1d(np.arange(len(seeds)), done)
            n_redrawn, n_tried = n_redrawn + len(remaining), n_tried + len(tried)
            if not len(remaining):
                break
            if attempt + 1 == MOST_ROUNDS or (not len(done) and n_tried >= MOST_VAIN):
                kind = DerivedDrawError if isinstance(self.simulator, DerivedSimulator) else DensityError
                raise kind(f"{len(remaining)} of {len(seeds)} draws failed {attempt + 1}{TIMES_OVER}{reason}")
        order = np.argsort(done)
        joint = concatenate_draws([one.joint for one in kept]).rows(order)
        acceptance = len(seeds) / max(n_made, 1.0)
        discarded = Discarded()
        if not only_parameters and (failed or n_unmapped):
            discarded = self._discarded(failed, n_unmapped, fixed, without_place(why))
        joint = replace(
            joint, acceptance=acceptance, n_redrawn=n_redrawn, reason=without_place(reason), failed=tuple(failed),
            discarded=discarded,
        )  # fmt: skip
        return np.concatenate([one.states for one in kept])[order], joint

    def _made(
        self, seeds: Sequence[SeedSequence], fixed: Fixed | None, only_parameters: bool
    ) -> Iterator[tuple[JointDraws | str, NDArray[np.int64]]]:
        """Yield draws and the rows of ``seeds`` that they are for; the message of Stan where a draw fails."""
        rows = np.arange(len(seeds))
        try:
            yield self.simulator.draw(seeds, fixed, only_parameters=only_parameters), rows
        except DensityError as error:
            # what bread's own code finds wrong is no property of the program's law, and no seed finds a state
            if not self.simulator.can_redraw or "bread:" in str(error) or isinstance(error, NoStateError):
                raise
            if len(seeds) == 1:
                yield str(error), rows
                return
            for row in rows.tolist():
                for joint, _ in self._made([seeds[row]], fixed, only_parameters):
                    yield joint, rows[row : row + 1]

    def _judge(self, joint: JointDraws) -> tuple[FloatArray, NDArray[np.int64], str, int]:
        """Return the states of draws, the rows that are kept, why others are not, and how many have no number."""
        try:
            states = self.instance.unconstrain(joint.parameters)
        except DensityError as error:
            raise DensityError(f"A simulated parameter is outside its declared support: {error}") from error
        is_finite = np.isfinite(states)
        inside = np.flatnonzero(is_finite.all(axis=1))
        message = ""
        if len(inside) < len(states):
            name = self.instance.coordinates[int(np.flatnonzero(~is_finite.all(axis=0))[0])]
            message = f"{name!r} rounds to the border of its support"
        log_prior, _, why = self.instance.terms(states[inside])
        is_rejected = np.isneginf(log_prior)  # of the likelihood at other data nothing is asked
        n_rejected = int(is_rejected.sum())  # by the program: its law is the one without them
        message = message or ((why or "the prior has density zero there") if is_rejected.any() else "")
        # solvers of differential equations are more exact with derivatives, and kernels start with these
        candidates = np.flatnonzero(~is_rejected)
        values, gradients = self.instance.gradients(states[inside[candidates]], 0.0)
        for row in candidates[~(np.isfinite(values) & np.isfinite(gradients).all(axis=1))]:
            try:
                self.instance.gradient(states[inside[row]], 0.0)
            except DensityError as error:
                is_rejected[row] = True
                message = message or str(error)
        kept = inside[~is_rejected]
        return states, kept, message, len(states) - n_rejected - len(kept)


@dataclass(frozen=True)
class _Kept:
    rows: NDArray[np.int64]
    states: FloatArray
    joint: JointDraws


def _of_attempt(seed: SeedSequence, attempt: int) -> SeedSequence:
    """Return a new seed for a later attempt with one."""
    return SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, _REDRAW, attempt), pool_size=seed.pool_size)
