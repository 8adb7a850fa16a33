"""Compiled mixtures, laws of some coordinates and of the others given them, or across rotations, against NumPy."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import cloudpickle
import numpy as np
import pytensor
import pytest
from numpy.random import default_rng

from bread.backends.pymc.density.c_references.reference_op import compiled_base
from bread.backends.pymc.density.compiling import compile_mode
from bread.backends.pymc.density.gradients import TemperedGradient
from bread.paths.centred import CentredReference, Link
from bread.paths.conditional import ConditionalReference, spline_through
from bread.paths.mixture import Component, MixtureReference, diagonal, gaussian
from bread.paths.nested import NestedReference
from bread.paths.normalised import SinhArcsinh
from bread.paths.precision import PrecisionReference
from bread.paths.product import ProductReference
from bread.paths.rotated import RotatedReference, gauge_at
from bread.paths.sums import Sums, exponentials
from tests.support.factor_laws import INDEFINITE, LAWS, indefinite_as

pytestmark = pytest.mark.skipif(compile_mode() is None, reason="PyTensor compiles no C code here")

KNOTS = np.array([-1.9, -0.6, 0.2, 1.3])
DRIVERS = np.array([-9.0, -1.9, -1.2, -0.6, 0.0, 0.2, 0.9, 1.3, 1.4, 8.0])  # in every piece, and on every knot
NORMAL, STUDENT = Component(np.array([-0.4]), np.array([0.8])), Component(
    np.array([1.1]), np.array([0.5]), degrees=np.array([7.0])
)  # fmt: skip
MARGINALS = {
    "normal": MixtureReference((NORMAL,), np.ones(1)),
    "mixture": MixtureReference((NORMAL, STUDENT), np.array([0.6, 0.4])),
}
ROUNDING = 1e-12  # of the largest term; sums of at most 150 terms, and of cubes that cancel, in another order


def nested(dim, driver, marginal="mixture"):
    rng, n = default_rng([dim, driver]), dim - 1
    return NestedReference(
        driver=driver,
        marginal=MARGINALS[marginal],
        centre=rng.normal(1.0, 2.0, n),
        matrix=np.eye(n) + rng.normal(0.0, 0.5 / np.sqrt(n), (n, n)),
        knots=KNOTS,
        values=rng.normal(0.0, 0.5, (len(KNOTS), 2, n)),
        slopes=rng.normal(0.0, 0.3, (len(KNOTS), 2, n)),
    )


def conditional(dim, drivers, *, laws=2, is_mixed=True):
    """A law given several coordinates; its knots are not on a line, its laws of the drivers are correlated."""
    rng, k = default_rng([dim, *drivers]), len(drivers)
    n, knots = dim - k, rng.normal(size=(3 * k + 2, k))
    origin, spread, parts = rng.normal(size=k), rng.uniform(0.5, 2.0, k), []
    for _ in range(laws):
        factor = 0.5 * spread[:, None] * rng.normal(size=(k, k))
        parts += gaussian(origin + 0.5 * rng.normal(size=k), factor @ factor.T + 0.1 * np.diag(spread**2)).components
    n_functions = 2 * n + (n * (n - 1) // 2 if is_mixed else 0)
    waves = np.sin(0.5 * knots @ rng.normal(size=(k, n_functions)) + rng.uniform(0.0, 6.0, n_functions))
    return ConditionalReference(
        drivers=drivers,
        marginal=MixtureReference(tuple(parts), np.arange(1.0, laws + 1.0) / np.arange(1.0, laws + 1.0).sum()),
        centre=rng.normal(1.0, 2.0, n),
        matrix=np.eye(n) + rng.normal(0.0, 0.5 / np.sqrt(n), (n, n)),
        origin=origin,
        spread=spread,
        knots=knots,
        coefficients=spline_through(knots, waves * np.repeat([0.5, 0.1], [2 * n, n_functions - 2 * n])),
    )


CONDITIONAL = {
    "two": conditional(5, (0, 1)),
    "in another order": conditional(5, (4, 1)),
    "three": conditional(9, (2, 0, 7)),
    "four": conditional(6, (5, 1, 0, 3)),
    "one Gaussian": conditional(5, (0, 3), laws=1),
    "not mixed": conditional(5, (0, 3), is_mixed=False),
    "one other": conditional(3, (0, 2)),
    "many others": conditional(40, (3, 30)),
}


def rotated(k, p, n_others):
    """A correlated law of what rotations leave alone; coordinates in no order, and a frame that is no identity."""
    rng, dim = default_rng([k, p, n_others]), k * p + n_others
    gauge = gauge_at(rng.permutation(dim)[: k * p].reshape(k, p), rng.normal(size=dim))
    n = gauge.n_invariant
    factor = np.eye(n) + rng.normal(0.0, 0.5 / np.sqrt(n), (n, n))
    return RotatedReference(gauge, gaussian(rng.normal(0.0, 0.5, n), 0.2 * factor @ factor.T))


def component(dim, kind, seed, *, is_heavy=False):
    """Coordinates apart, correlated, or correlated along two directions; half of them with heavy tails."""
    rng = default_rng([dim, seed])
    fields = {"mean": rng.normal(size=dim), "scale": rng.uniform(0.5, 2.0, dim)}
    if kind == "full":
        fields["matrix"] = np.eye(dim) + rng.normal(0.0, 0.5 / np.sqrt(dim), (dim, dim))
    elif kind == "low rank":
        fields["directions"] = np.linalg.qr(rng.normal(size=(dim, 2)))[0]
        fields["stretch"] = np.array([3.0, 0.2])
    if is_heavy:
        fields["degrees"] = np.where(np.arange(dim) % 2 == 0, 4.0, np.inf)
    return Component(**fields)


def mixture(dim, kinds, *, is_heavy=True):
    parts = tuple(component(dim, kind, seed, is_heavy=is_heavy and seed % 2 == 1) for seed, kind in enumerate(kinds))
    weights = np.arange(1.0, len(parts) + 1.0)
    return MixtureReference(parts, weights / weights.sum())


def independent(dim, n_laws=3):
    """Independent mixtures, one law of which has no weight."""
    rng = default_rng([dim, n_laws])
    weights = rng.dirichlet(np.ones(n_laws), dim)
    weights[0] = np.eye(n_laws)[0]
    matrix = np.eye(dim) + rng.normal(0.0, 0.5 / np.sqrt(dim), (dim, dim))
    laws = rng.normal(size=(dim, n_laws)), rng.uniform(0.3, 1.2, (dim, n_laws))
    return ProductReference(rng.normal(size=dim), matrix, weights, *laws)


def with_polynomials(reference, seed=5):
    """The same with polynomials of two coordinates: held ones, plus 2, of the matrix, so that it has a factor."""
    rng, k = default_rng(seed), len(reference.drivers)
    precision, linear = reference.precision, reference.linear
    centres = rng.normal(size=k)

    def functions(sums, degrees, exponents, held):
        return replace(
            sums.functions, exponents=exponents, degrees=degrees, centres=centres, widths=1.0 + centres**2,
            is_held=np.broadcast_to(held, k).copy(),
        )  # fmt: skip

    def degrees(sums):
        return rng.integers(0, 6, sums.functions.degrees.shape) * (np.arange(k) < 2)

    n, twice = len(precision.functions.exponents), np.tile(precision.functions.exponents, (2, 1))
    of_matrix = functions(precision, np.vstack([0 * degrees(precision), degrees(precision)]), twice, True)
    of_linear = functions(linear, degrees(linear), linear.functions.exponents, np.arange(k) == 1)
    values = np.concatenate([2.0 * precision.values, precision.values])
    numbers = np.concatenate([precision.numbers, n + precision.numbers])
    precision = Sums(np.tile(precision.places, 2), values, numbers, of_matrix)
    return replace(reference, precision=precision, linear=replace(linear, functions=of_linear))


def by_precision(n, k, *, is_indefinite=False):
    """A regression on n effects with k - 1 scales of their own, and one of the noise."""
    rng = default_rng([n, k])
    design, (rows, columns) = rng.normal(size=(n + 3, n)), np.tril_indices(n)
    squares = (design.T @ design)[rows, columns] * (-1.0 if is_indefinite else 1.0)
    exponents = np.zeros((len(rows) + n, k))
    exponents[: len(rows), -1] = -2.0
    exponents[np.arange(len(rows), len(exponents)), np.arange(n) % max(k - 1, 1)] -= 2.0
    places = np.concatenate([rows * n + columns, np.arange(n) * (n + 1)])
    linear = exponentials(np.arange(n), rng.normal(size=n), -2.0 * np.eye(k)[[-1] * n])
    drivers = tuple(sorted(int(i) for i in rng.permutation(n + k)[:k]))
    precision = exponentials(places, np.concatenate([squares, np.ones(n)]), exponents)
    return PrecisionReference(drivers, independent(k), precision, linear, n)


BOTH = {
    "independent": independent(4),
    "by precision": by_precision(2, 2),
    "nested": nested(4, 1),
    "conditional": conditional(4, (1, 3)),
    "rotated": rotated(3, 1, 1),
    "mixture": mixture(4, ["full", "low rank", "diagonal", "full"]),
    "factors": LAWS["(1, 2, 1, 1)"],
}


def centred(n_effects, *, is_linked):
    """Two scales of as many effects each, and two means; ``is_linked``: the first effects act on the second ones."""
    dim, rng = 2 * n_effects + 5, default_rng(n_effects)
    first, second = 2 + np.arange(n_effects), 2 + n_effects + np.arange(n_effects)
    by = np.zeros((dim, dim), dtype=bool)
    by[first, 0] = by[second, 1] = True
    by[first[0], 1] = True  # an effect of both
    root = np.tril(rng.normal(0.0, 0.1, (dim, dim)), -1) + np.diag(rng.uniform(0.2, 0.8, dim))
    links = (Link(dim - 1, first, second),) if is_linked else ()
    changed = np.array([0, dim - 2])  # a scale, and a coordinate that has none
    normal = SinhArcsinh(changed, *np.array([[0.3, -1.0], [0.5, 2.0], [-0.4, 0.2], [0.7, 1.2]]))
    return CentredReference(by, rng.normal(size=dim), root, links, normal)


def states_of(reference):
    states = reference.sample(len(DRIVERS), default_rng(1))
    if isinstance(reference, NestedReference):
        states[:, reference.driver] = DRIVERS
    elif isinstance(reference, ConditionalReference):
        states[:4, list(reference.drivers)] = reference.origin + reference.spread * reference.knots[:4]
        states[4] += 1.0
    return states


def largest_difference(compiled, reference):
    """Of log densities and gradients, relative to the largest of the state."""
    worst = 0.0
    for state in states_of(reference):
        value, gradient = compiled(state)
        exact, slope = reference.value_and_gradient(state)
        scale = max(1.0, abs(exact), float(np.abs(slope).max()))
        worst = max(worst, abs(value - exact) / scale, float(np.abs(gradient - slope).max()) / scale)
    return worst


@pytest.mark.parametrize("marginal", list(MARGINALS))
@pytest.mark.parametrize(("dim", "driver"), [(2, 0), (2, 1), (4, 0), (4, 2), (4, 3), (150, 70)])
def test_compiled_density_and_gradient_are_those_of_numpy(dim, driver, marginal):
    reference = nested(dim, driver, marginal)
    assert largest_difference(compiled_base(reference), reference) < ROUNDING


@pytest.mark.parametrize("name", list(CONDITIONAL))
def test_laws_given_several_coordinates_are_those_of_numpy(name):
    assert largest_difference(compiled_base(CONDITIONAL[name]), CONDITIONAL[name]) < ROUNDING


@pytest.mark.parametrize("is_heavy", [False, True])
@pytest.mark.parametrize(
    ("dim", "kinds"),
    [(1, ["diagonal"] * 2), (2, ["full"] * 5), (7, ["low rank", "full"]), (90, ["low rank"] * 2), (90, ["full"] * 2)],
)
def test_mixtures_are_those_of_numpy(dim, kinds, is_heavy):
    reference = mixture(dim, kinds, is_heavy=is_heavy)
    assert largest_difference(compiled_base(reference), reference) < ROUNDING


@pytest.mark.parametrize("is_linked", [False, True])
@pytest.mark.parametrize("n_effects", [1, 3, 60])
def test_laws_in_centred_coordinates_are_those_of_numpy(n_effects, is_linked):
    reference = centred(n_effects, is_linked=is_linked)
    assert largest_difference(compiled_base(reference), reference) < ROUNDING
    far = np.where(np.arange(reference.dim) == 0, 900.0, 1.0)
    assert not np.isfinite(compiled_base(reference)(far)[0])


@pytest.mark.parametrize("wrong", ["mean", "root", "links", "normal"])
def test_a_law_in_centred_coordinates_that_differs_a_little_is_seen(wrong):
    reference = centred(3, is_linked=True)
    if wrong == "normal":
        changed = reference.normal._replace(tail=reference.normal.tail * (1.0 + 1e-6))
    else:
        changed = () if wrong == "links" else getattr(reference, wrong) * (1.0 + 1e-6)
    assert largest_difference(compiled_base(replace(reference, **{wrong: changed})), reference) > 100 * ROUNDING


@pytest.mark.parametrize("wrong", ["mean", "scale", "matrix", "directions", "stretch", "degrees", "weights"])
def test_a_mixture_that_differs_a_little_is_seen(wrong):
    reference = BOTH["mixture"]
    if wrong == "weights":
        other = replace(reference, weights=reference.weights + np.array([1e-6, -1e-6, 0.0, 0.0]))
    else:
        parts = [
            replace(one, **{wrong: getattr(one, wrong) * (1.0 + 1e-6) + (wrong == "mean") * 1e-6})
            if getattr(one, wrong) is not None
            else one
            for one in reference.components
        ]
        other = replace(reference, components=tuple(parts))
    assert largest_difference(compiled_base(other), reference) > 100 * ROUNDING


@pytest.mark.parametrize(("dim", "n_laws"), [(1, 1), (2, 3), (7, 2), (60, 3)])
def test_independent_mixtures_are_those_of_numpy(dim, n_laws):
    reference = independent(dim, n_laws)
    assert largest_difference(compiled_base(reference), reference) < ROUNDING


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 2), (5, 1), (20, 22), (40, 3)])
def test_laws_given_their_precision_are_those_of_numpy(n, k):
    """To a thousandfold of rounding: by another order of sums of which the largest terms cancel."""
    reference = by_precision(n, k)
    assert largest_difference(compiled_base(reference), reference) < 1000 * ROUNDING
    for other in (by_precision(n, k, is_indefinite=True), with_polynomials(reference), with_polynomials(reference, 6)):
        assert largest_difference(compiled_base(other), other) < 1000 * ROUNDING


@pytest.mark.parametrize("indefinite", INDEFINITE)
@pytest.mark.parametrize("name", list(LAWS))
def test_laws_of_factors_are_those_of_numpy(name, indefinite):
    law = indefinite_as(LAWS[name], indefinite)
    assert largest_difference(compiled_base(law), law) < 100 * ROUNDING


@pytest.mark.parametrize("wrong", ["own", "curvature", "slopes", "marginal"])
def test_a_law_of_factors_that_differs_a_little_is_seen(wrong):
    law = LAWS["two powers"]
    if wrong == "marginal":
        marginal = law.marginal
        (one,) = marginal.law.components
        changed = replace(marginal.law, components=(replace(one, scale=one.scale * (1.0 + 1e-6)),))
        other = replace(law, marginal=replace(marginal, law=changed))
    else:
        part = getattr(law.couplings, wrong)
        couplings = replace(law.couplings, **{wrong: replace(part, values=part.values * (1.0 + 1e-6))})
        other = replace(law, couplings=couplings)
    assert largest_difference(compiled_base(other), law) > 1e4 * ROUNDING


def test_a_law_of_factors_whose_others_have_no_gaussian_law_is_not_compiled():
    law = LAWS["all alike"]
    several = replace(law.marginal.law, components=law.marginal.law.components * 2, weights=np.array([0.5, 0.5]))
    assert compiled_base(replace(law, marginal=replace(law.marginal, law=several))) is None


@pytest.mark.parametrize("name", ["independent", "by precision"])
@pytest.mark.parametrize("wrong", ["means", "scales", "matrix", "values", "exponents", "centres", "widths"])
def test_independent_mixtures_and_precisions_that_differ_a_little_are_seen(name, wrong):
    reference = other = BOTH[name]
    if wrong in ("values", "exponents", "centres", "widths"):
        if name == "independent":
            return
        reference = with_polynomials(reference)
        sums = reference.precision
        part = sums if wrong == "values" else sums.functions
        changed = replace(part, **{wrong: getattr(part, wrong) * (1.0 + 1e-6)})
        precision = changed if wrong == "values" else replace(sums, functions=changed)
        other = replace(reference, precision=precision)
    else:
        law = reference if name == "independent" else reference.marginal
        moved = replace(law, **{wrong: getattr(law, wrong) * (1.0 + 1e-6)})
        other = moved if name == "independent" else replace(reference, marginal=moved)
    assert largest_difference(compiled_base(other), reference) > 100 * ROUNDING


def test_one_component_and_large_matrices_are_left_to_numpy():
    assert compiled_base(mixture(3, ["full"])) is None
    assert compiled_base(mixture(150, ["full"] * 2)) is None
    assert compiled_base(mixture(150, ["low rank"] * 2)) is not None


@pytest.mark.parametrize("shape", [(2, 1, 0), (2, 1, 3), (3, 2, 2), (3, 3, 1), (2, 5, 0), (4, 9, 3)])
def test_laws_across_rotations_are_those_of_numpy(shape):
    reference = rotated(*shape)
    assert largest_difference(compiled_base(reference), reference) < 1000 * ROUNDING  # by another decomposition


def test_a_law_across_rotations_that_differs_a_little_is_seen():
    reference = rotated(3, 3, 1)
    (part,) = reference.law.components
    moved = replace(reference.law, components=(replace(part, mean=part.mean + 1e-6),))
    turned = replace(reference.gauge, frame=reference.gauge.frame[:, [1, 0, 2]])
    for other in (replace(reference, law=moved), replace(reference, gauge=turned)):
        assert largest_difference(compiled_base(other), reference) > 1e5 * ROUNDING
    nothing = reference.gauge.state(reference.law.sample(1, default_rng(1))[0])
    nothing[reference.gauge.places] = 0.0
    assert compiled_base(reference)(nothing)[0] == -np.inf


NUMBERS = {
    "nested": ["centre", "matrix", "values", "slopes", "knots"],
    "conditional": ["centre", "matrix", "origin", "spread", "knots", "coefficients"],
}


@pytest.mark.parametrize(("kind", "wrong"), [pair for kind in NUMBERS for pair in product([kind], NUMBERS[kind])])
def test_a_reference_that_differs_a_little_is_seen(kind, wrong):
    reference = BOTH[kind]
    other = replace(reference, **{wrong: getattr(reference, wrong) + 1e-6})
    assert largest_difference(compiled_base(other), reference) > 100 * ROUNDING


@pytest.mark.parametrize("kind", list(BOTH))
def test_far_away_the_density_is_what_numpy_says(kind):
    compiled = compiled_base(BOTH[kind])
    for state in (np.full(4, np.nan), np.full(4, np.inf), np.full(4, 1e200), np.full(4, -1e200)):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(compiled(state)[0], BOTH[kind].value_and_gradient(state)[0])


@pytest.mark.parametrize("kind", list(BOTH))
def test_mixed_gradients_are_sums(kind):
    compiled, state, slope = compiled_base(BOTH[kind]), states_of(BOTH[kind])[2], np.array([1.0, -2.0, 0.5, 3.0])
    value, gradient = compiled(state)
    mixed_value, mixed = compiled.mixed(state, slope, np.array([0.3, 0.7]))
    assert mixed_value == value
    np.testing.assert_allclose(mixed, 0.3 * gradient + 0.7 * slope, rtol=1e-13)


def test_gradients_and_positions_with_strides_are_read_as_they_are():
    """PyTensor's gradient of a Cholesky factor is such a view."""
    compiled, weights = compiled_base(nested(4, 1)), np.array([0.3, 0.7])
    state, slope = states_of(nested(4, 1))[2], np.array([1.0, -2.0, 0.5, 3.0])
    value, gradient = compiled.mixed(state, slope, weights)
    wide_state, wide_slope = np.repeat(state, 2)[::2], np.repeat(slope, 2)[::2]
    assert not wide_state.flags.c_contiguous and not wide_slope.flags.c_contiguous
    found = compiled.mixed(wide_state, wide_slope, weights)
    assert (found[0], compiled(wide_state)[0]) == (value, value)
    np.testing.assert_array_equal(found[1], gradient)


@pytest.mark.parametrize("kind", list(BOTH))
@pytest.mark.parametrize("beta", [0.0, 0.35, 1.0])
def test_tempered_gradients_are_the_same_with_and_without_it(beta, kind):
    def model(position):
        return np.array(-0.5 * position @ position), -position, None

    reference = BOTH[kind]
    state, found = states_of(reference)[3], []
    for base in (compiled_base(reference), reference.value_and_gradient):
        tempered = TemperedGradient(model, {}, ("x",), 4)
        tempered.follow_reference(base)
        tempered.set_beta(beta)
        value, gradient = tempered(state)
        found.append(np.array([value, *gradient, tempered.finish(state)]))
    np.testing.assert_allclose(found[0], found[1], rtol=100 * ROUNDING)


@pytest.mark.parametrize("kind", list(BOTH))
def test_a_copy_in_another_process_compiles_nothing_of_its_own(kind):
    reference = BOTH[kind]
    compiled = compiled_base(reference)
    sent = cloudpickle.dumps(compiled)
    assert len(sent) < 2 * len(cloudpickle.dumps(reference)) + 1000
    copy = cloudpickle.loads(sent)
    for state in states_of(reference):
        value, gradient = compiled(state)
        assert copy(state)[0] == value
        np.testing.assert_array_equal(copy(state)[1], gradient)


@pytest.mark.parametrize("kind", list(BOTH))
def test_positions_of_another_number_of_coordinates_are_an_error(kind):
    with pytest.raises(ValueError, match="of one dimension"):
        compiled_base(BOTH[kind])(np.zeros(5))


def test_other_references_and_modes_of_the_user_compile_nothing():
    assert compiled_base(gaussian(np.zeros(2), np.eye(2))) is None
    heavy = replace(BOTH["conditional"], marginal=gaussian(np.zeros(2), np.eye(2)))
    assert compiled_base(heavy) is not None
    (part,) = heavy.marginal.components
    student = MixtureReference((replace(part, degrees=np.array([3.0, 3.0])),), np.ones(1))
    assert compiled_base(replace(heavy, marginal=student)) is None
    ring = rotated(2, 1, 0)
    assert compiled_base(replace(ring, law=diagonal(np.zeros(1), np.ones(1)))) is None
    assert compiled_base(rotated(2, 155, 0)) is None and compiled_base(rotated(2, 20, 0)) is not None
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        assert compiled_base(nested(4, 1)) is None
