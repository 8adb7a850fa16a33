"""Products of matrices and vectors, and diagonal matrices, in C: the numbers of PyTensor's own operations."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.random import default_rng
from pytensor.compile.mode import get_mode
from pytensor.tensor.blockwise import Blockwise

from bread.backends.pymc.density.compiling import compile_mode, density_mode
from bread.backends.pymc.density.pytensor_fixes.matrix_vector import MatrixVector
from bread.backends.pymc.versions import INDEXED

pytestmark = [pytest.mark.pymc, pytest.mark.skipif(compile_mode() is None, reason="PyTensor compiles no C code here")]

ROUNDING = 1e-13  # of sums of at most 400 products, in another order, by the size of the largest term
LEFT_TO_PYTHON = ("Gemv", "Ger", "AllocDiag")


def views():
    """Matrices in every order of memory, with vectors that suit them."""
    rng = default_rng(1)
    wide, tall = rng.normal(size=(37, 11)), rng.normal(size=(400, 3))
    long = rng.normal(size=(2, 90))
    yield "rows", wide, rng.normal(size=11), rng.normal(size=37)
    yield "columns", np.asfortranarray(wide), rng.normal(size=11), rng.normal(size=37)
    yield "a transpose", wide.T, rng.normal(size=37), rng.normal(size=11)
    yield "backwards", wide[::-1, ::-1], rng.normal(size=11), rng.normal(size=37)
    yield "every second", wide[::2, ::3], long[0, :8:2], rng.normal(size=38)[::2]
    yield "a vector with steps", wide, rng.normal(size=(11, 2))[:, 1], rng.normal(size=74)[::-2]
    yield "many rows", np.asfortranarray(tall), rng.normal(size=3), rng.normal(size=400)
    yield "more rows than stay in the cache", np.ones((2, 5000)).T * 0.1, np.array([1.0, -0.5]), rng.normal(size=5000)
    yield "one row", wide[:1], rng.normal(size=11), np.array([2.0])
    yield "one column", wide[:, :1], np.array([0.3]), rng.normal(size=37)
    yield "no columns", wide[:, :0], np.zeros(0), rng.normal(size=37)
    yield "no rows", wide[:0], rng.normal(size=11), np.zeros(0)


@pytest.fixture(scope="module")
def product():
    """``beta * y + alpha * A @ x``, compiled."""
    inputs = [pt.dvector(), pt.dscalar(), pt.dmatrix(), pt.dvector(), pt.dscalar()]
    return pytensor.function(inputs, MatrixVector()(*inputs), mode=density_mode())


@pytest.mark.parametrize(("matrix", "x", "y"), [pytest.param(*rest, id=name) for name, *rest in views()])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (-0.7, 1.0), (2.0, -0.3)])
def test_a_product_is_that_of_numpy_in_any_order_of_memory(product, matrix, x, y, alpha, beta):
    expected = beta * y + alpha * (matrix @ x)
    size = 1.0 + np.abs(y).max(initial=0.0) + 2.0 * float((np.abs(matrix) @ np.abs(x)).max(initial=0.0))
    np.testing.assert_allclose(product(y, alpha, matrix, x, beta), expected, rtol=0.0, atol=ROUNDING * size)


def test_what_is_multiplied_by_nothing_is_not_read(product):
    y = np.full(4, np.nan)
    assert product(y, 1.0, np.eye(4), np.arange(4.0), 0.0).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert np.isnan(product(y, 1.0, np.eye(4), np.arange(4.0), 1.0)).all()


@pytest.mark.parametrize(("rows", "columns"), [(4, 3), (5, 4)])
def test_lengths_that_do_not_fit_are_named(product, rows, columns):
    with pytest.raises(ValueError, match=rf"\({rows}, {columns}\).* 4 .*length 4"):
        product(np.zeros(4), 1.0, np.zeros((rows, columns)), np.zeros(4), 0.0)


def regression(n=50, p=20):
    rng = default_rng(3)
    design = rng.normal(size=(n, p))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=p)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", pt.dot(design, beta), sigma, observed=rng.normal(size=n))
    return model


def gaussian_process(n=12):
    x = np.linspace(0.0, 1.0, n)[:, None]
    with pm.Model() as model:
        length = pm.InverseGamma("length", 5.0, 1.0)
        f = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(1, ls=length)).prior("f", X=x)
        pm.Normal("y", f, 0.3, observed=np.sin(7.0 * x[:, 0]))
    return model


def correlated_slopes():
    rng = default_rng(4)
    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("factor", n=3, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0))
        slope = pm.MvNormal("slope", np.zeros(3), chol=factor, shape=(5, 3))
        pm.Normal("y", slope.sum(axis=1), 1.0, observed=rng.normal(size=5))
    return model


def effects_of_groups():
    rng, group = default_rng(6), np.repeat(np.arange(4), 3)
    with pm.Model() as model:
        effects = pm.Normal("effects", 0.0, 1.0, shape=(4, 2))
        pm.Normal("y", effects[group, 0] + effects[group, -1] * rng.normal(size=12), 0.5, observed=rng.normal(size=12))
    return model


MODELS = {
    "regression": regression,
    "effects of groups": effects_of_groups,
    "Gaussian process": gaussian_process,
    "correlated slopes": correlated_slopes,
}


def gradient(model, mode):
    return model.compile_fn([model.logp(), model.dlogp()], inputs=model.value_vars, mode=mode)


def names(function):
    return [str(node.op) for node in function.maker.fgraph.toposort()]


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_models_are_those_of_pytensor_and_leave_nothing_to_python(name):
    model = MODELS[name]()
    plain, ours = gradient(model, compile_mode()), gradient(model, density_mode())
    rng = default_rng(5)
    for _ in range(20):
        state = {name: rng.normal(0.0, 0.7, size=np.shape(value)) for name, value in model.initial_point().items()}
        (value, slope), (expected, expected_slope) = ours(state), plain(state)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-9, atol=1e-9 * np.abs(expected_slope).max())
    left = [name for name in names(ours.f) if name.startswith(LEFT_TO_PYTHON)]
    assert not left
    if name == "effects of groups" and INDEXED:
        assert not any(isinstance(node.op, INDEXED) for node in ours.f.maker.fgraph.toposort())
        assert any(isinstance(node.op, INDEXED) for node in plain.f.maker.fgraph.toposort()), "control"
    if name == "regression" and not pytensor.config.blas__ldflags:  # the control: what PyTensor does by itself
        assert any(name.startswith("Gemv") for name in names(plain.f))


PLACES = {
    "twice and backwards": (np.array([0, 2, 2, -1]), np.array([1, 1, 1, -2])),
    "one column": (np.array([3, 0, 3]), 1),
    "unsigned": (np.array([3, 0, 3], dtype=np.uint64), np.array([2, 2, 0], dtype=np.uint8)),
    "broadcast": (np.array([[0], [3]]), np.array([2, -3, 2])),
}


def takes_and_adds(at, values, mode):
    """Elements of a matrix at places, the matrix with values added there, and with values set there."""
    matrix, added = pt.tensor("m", dtype="float64", shape=(4, 3)), pt.tensor("v", dtype="float64", shape=values.shape)
    taken = matrix[at]
    return pytensor.function(
        [matrix, added], [taken, pt.inc_subtensor(taken, added), pt.set_subtensor(taken, added)], mode=mode
    )


@pytest.mark.skipif(not INDEXED, reason="PyTensor itself indexes in C here")
@pytest.mark.parametrize("name", PLACES)
def test_elements_at_constant_places_have_the_same_bits(name):
    at, rng = PLACES[name], default_rng(7)
    matrix = rng.normal(size=(4, 3)) * 10.0 ** rng.integers(-8, 8, (4, 3))
    values = rng.normal(size=np.broadcast(*at).shape)
    plain, ours = (takes_and_adds(at, values, mode) for mode in (compile_mode(), density_mode()))
    for one, other in zip(plain(matrix, values), ours(matrix, values), strict=True):
        assert one.tobytes() == other.tobytes() and one.shape == other.shape
    assert not {type(node.op) for node in ours.maker.fgraph.toposort()} & set(INDEXED)
    assert {type(node.op) for node in plain.maker.fgraph.toposort()} & set(INDEXED), "control"


@pytest.mark.skipif(not INDEXED, reason="PyTensor itself indexes in C here")
def test_other_places_are_left_alone():
    """Beyond the matrix, which is an error when it is evaluated; not known; slices; truths; none at all."""
    matrix, index = pt.tensor("m", dtype="float64", shape=(4, 3)), pt.lvector("index")
    unknown = pt.dmatrix("unknown")
    some = np.array([0, 1])
    with pytest.raises(IndexError):
        pytensor.function([matrix], matrix[np.array([4, 0]), some], mode=density_mode())(np.ones((4, 3)))
    for inputs, taken in (
        ([matrix, index], matrix[index, some]),
        ([unknown], unknown[some, some]),
        ([matrix], matrix[np.array([[True, False, True]] * 4)]),
        ([matrix], matrix[np.zeros(0, dtype=int), np.zeros(0, dtype=int)]),
    ):
        values = [np.arange(12.0).reshape(4, 3), np.array([3, 1])][: len(inputs)]
        plain, ours = (pytensor.function(inputs, taken, mode=mode) for mode in (compile_mode(), density_mode()))
        np.testing.assert_array_equal(ours(*values), plain(*values))


def test_a_large_product_stays_with_blas():
    function = gradient(regression(n=3000), density_mode())
    assert not any(name.startswith("MatrixVector") for name in names(function.f))


@pytest.mark.parametrize("length", [None, 5])
def test_a_diagonal_matrix_has_the_same_bits(length):
    vector = pt.tensor("v", dtype="float64", shape=(length,))
    values = np.array([1.5, -0.0, np.inf, np.nan, -2.0])
    # As in the gradient of a Cholesky factor; a bare one is written as an indexed assignment before.
    diagonal = Blockwise(pt.diag(vector).owner.op, signature="(i)->(i,i)")(vector)
    plain, ours = (pytensor.function([vector], diagonal, mode=mode) for mode in (compile_mode(), density_mode()))
    assert plain(values).tobytes() == ours(values).tobytes()
    batch = Blockwise(pt.diag(vector).owner.op, signature="(i)->(i,i)")(pt.stack([vector, 2.0 * vector]))
    plain_batch, our_batch = (pytensor.function([vector], batch, mode=mode)(values) for mode in (None, density_mode()))
    assert our_batch.shape == (2, 5, 5)
    assert plain_batch.tobytes() == our_batch.tobytes()
    assert any(name.startswith("AllocDiag") for name in names(plain)), "control"
    assert not any(name.startswith("AllocDiag") for name in names(ours))


def test_what_a_user_chose_is_left_alone():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        assert density_mode() is None
        assert get_mode(density_mode()) is get_mode("FAST_COMPILE")
