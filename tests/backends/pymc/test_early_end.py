"""A fit on the real data that is dear ends where its draws are enough, and only there: by rule, in ``pm.sample``."""

import contextlib
import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pymc as pm
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.backends.pymc import fitting
from bread.backends.pymc.early_end import LOOKS, EarlyEnd, EnoughDrawsError, is_enough
from bread.errors import UnsupportedModelError

N_TUNE, N_DRAWS, N_CHAINS = 50, 1000, 2
DEAR, CHEAP = 300.0, 3.0  # gradients of a step


class Trace:
    """One chain of `x`: tuning far off, then draws."""

    def __init__(self, draws: NDArray[np.float64]) -> None:
        self._all = np.concatenate([np.full((N_TUNE, *draws.shape[1:]), 1e6), draws])

    def get_values(self, name: str, burn: int = 0) -> NDArray[np.float64]:
        assert name == "x"
        return self._all[burn:]


def steps(chain: int, per_step: float) -> Iterator[SimpleNamespace]:
    for number in range(N_TUNE + N_DRAWS):
        stats = {"tree_size": per_step, "diverging": number % 100 == 99}
        yield SimpleNamespace(chain=chain, tuning=number < N_TUNE, stats=[stats])


def run(draws: NDArray[np.float64], per_step: float, *, together: bool, n_observed: int = 0) -> EarlyEnd:
    """Hand over chains (chain, draw, ...) one after the other, or step by step."""
    ending = EarlyEnd(["x"], len(draws), n_observed)
    traces = [Trace(chain) for chain in draws]
    each = [list(steps(chain, per_step)) for chain in range(len(draws))]
    order = (
        [one for row in zip(*each, strict=True) for one in row] if together else [one for row in each for one in row]
    )
    try:
        for draw in order:
            ending(traces[draw.chain], draw)
    except EnoughDrawsError:
        assert ending.draws
    return ending


def independent(seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(N_CHAINS, N_DRAWS, 3))


@pytest.mark.parametrize("together", [True, False])
def test_it_ends_at_the_first_look_whichever_chain_is_ahead(together: bool) -> None:
    draws = independent()
    ending = run(draws, DEAR, together=together)
    np.testing.assert_array_equal(ending.draws["x"], draws[:, : LOOKS[0]])
    assert ending.n_divergences == 2 * sum((N_TUNE + number) % 100 == 99 for number in range(LOOKS[0]))


@pytest.mark.parametrize("together", [True, False])
def test_cheap_draws_are_all_made(together: bool) -> None:
    assert not run(independent(), CHEAP, together=together).draws
    assert run(independent(), CHEAP, together=together, n_observed=100_000).draws, "control: gradients of many data"


def test_chains_that_disagree_or_move_slowly_run_to_their_end() -> None:
    apart = independent()
    apart[1, :, 2] += 1.0
    assert not run(apart, DEAR, together=True).draws
    noise, slow = independent(1), np.zeros((N_CHAINS, N_DRAWS, 3))
    for number in range(1, N_DRAWS):
        slow[:, number] = 0.95 * slow[:, number - 1] + noise[:, number]
    assert not run(slow, DEAR, together=True).draws
    assert run(noise, DEAR, together=True).draws, "control"


def test_the_second_look_may_be_the_one_that_is_enough() -> None:
    """Every draw is there three times: 500 draws of two chains are worth 167, a thousand 333."""
    three = np.repeat(independent(2), 3, axis=1)[:, :N_DRAWS]
    assert run(three, DEAR, together=True).draws["x"].shape == (N_CHAINS, LOOKS[1], 3)


def test_a_variable_that_stands_still_is_never_enough() -> None:
    draws = {"x": independent(), "n": np.ones((N_CHAINS, N_DRAWS))}
    assert not is_enough(draws)
    assert is_enough({"x": draws["x"]}), "control"


@pytest.mark.parametrize(("n_observed", "n_draws"), [(12_000, LOOKS[0]), (6, N_DRAWS)])
def test_in_pm_sample(n_observed: int, n_draws: int) -> None:
    """The same draws on one core and on two; with few data, where gradients are cheap, all of them."""
    y = np.random.default_rng(4).normal(1.0, 1.0, n_observed)
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", mu, sigma, observed=y)
    opened = open_model(model, OpenOptions())
    fits = [opened.fit(seed=3, cores=cores, progressbar=False) for cores in (1, 2)]
    assert fits[0].draws["mu"].shape == fits[0].draws["sigma"].shape == (2, n_draws)
    assert fits[0].source == ("pm.sample, ended after 250 draws a chain" if n_draws == LOOKS[0] else "pm.sample")
    for name in ("mu", "sigma"):
        np.testing.assert_array_equal(fits[0].draws[name], fits[1].draws[name])
    assert fits[0].n_divergences == fits[1].n_divergences == 0
    mean, error = fits[0].draws["mu"].mean(), 1.0 / np.sqrt(n_observed)
    assert abs(mean - y.mean() * (n_observed / (n_observed + 1.0))) < 0.5 * error, (
        "after tuning, in its own coordinates"
    )


@pytest.mark.parametrize("cores", [1, 2])
def test_its_chains_use_one_thread_of_blas_each(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forked chains inherit the limit: PyMC sets none there, and with all threads each they take ten times as long."""
    seen: list[int] = []

    @functools.wraps(pm.sample)
    def sample(*arguments: Any, **options: Any) -> Any:
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return original(*arguments, **options)

    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0.0, 1.0), 1.0, observed=[0.3])
    opened = open_model(model, OpenOptions())
    original = pm.sample
    monkeypatch.setattr(pm, "sample", sample)
    before = threadpool_info()
    opened.fit(seed=3, cores=cores, progressbar=False)
    assert seen
    assert set(seen) == {1}
    assert threadpool_info() == before, "the user's own limits are back"


@pytest.mark.pymc
def test_an_interrupt_ends_chains_that_run_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyMC takes an interrupt of one chain for its end, and goes on with the next: as many draws again."""
    called: list[int] = []
    take_note = EarlyEnd.__call__

    def interrupted(self: EarlyEnd, trace: Any, draw: Any) -> None:
        called.append(draw.chain)
        if len(called) == 10:
            raise KeyboardInterrupt
        take_note(self, trace, draw)

    monkeypatch.setattr(EarlyEnd, "__call__", interrupted)
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("x"), observed=[0.3])
    with contextlib.suppress(UnsupportedModelError):  # PyMC's chains of unequal length
        fitting.fit(model, ["x"], seed=1, cores=1, progressbar=False)
    assert called == [0] * 10 + [1]
