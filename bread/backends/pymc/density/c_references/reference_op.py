"""Log density and gradient of a reference, compiled, and mixed with the model's.

NumPy takes twenty calls for what is a few hundred products: on a small model twice the time of its own compiled
gradient. Here it is one operation of PyTensor, in C code that its linker compiles and caches.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.link.c.op import COp

from bread.backends.base import FloatArray
from bread.backends.pymc.density.c_references import (
    centred_code,
    conditional_code,
    factor_code,
    mixture_code,
    nested_code,
    precision_code,
    product_code,
    rotated_code,
)
from bread.backends.pymc.density.compiling import compile_mode
from bread.paths.centred import CentredReference
from bread.paths.conditional import ConditionalReference
from bread.paths.factors import FactorReference
from bread.paths.mixture import MixtureReference
from bread.paths.nested import NestedReference
from bread.paths.precision import PrecisionReference
from bread.paths.product import ProductReference
from bread.paths.rotated import RotatedReference

_MODULES: dict[type, Any] = {
    CentredReference: centred_code,
    ConditionalReference: conditional_code,
    FactorReference: factor_code,
    MixtureReference: mixture_code,
    NestedReference: nested_code,
    PrecisionReference: precision_code,
    ProductReference: product_code,
    RotatedReference: rotated_code,
}
# Each is a function that is not inlined: in the one function of PyTensor's module, which it takes to run once, the
# compiler vectorises no loop.
_CODES: dict[str, str] = {module.NAME: module.CODE for module in _MODULES.values()}


class ReferenceDensity(COp):
    """(position, packed reference, slope, weights) -> log q and ``weights[0] * grad log q + weights[1] * slope``.

    Parameters
    ----------
    function : str
        The C function; the first number of what it is given is the dimension.
    """

    __props__ = ("function",)

    def __init__(self, function: str) -> None:
        self.function = function

    def make_node(self, *inputs: Any) -> Apply[Any]:
        """Return the node of four vectors of doubles."""
        return Apply(self, list(inputs), [pt.dscalar(), pt.dvector()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """Refuse: without a compiler `compiled_base` gives none."""
        raise NotImplementedError("ReferenceDensity runs compiled only.")

    def c_headers(self, **_: Any) -> list[str]:
        """Return the headers that the code needs."""
        return ["<cmath>", "<vector>"]

    def c_support_code(self, **_: Any) -> str:
        """Return the function that computes."""
        return _CODES[self.function]

    def c_code_cache_version(self) -> tuple[int, ...]:
        """Return a number of the code itself, so that no module of other code is taken from the cache."""
        call = self.c_code(None, "", ("",) * 4, ("",) * 2, {"fail": ""})
        return (zlib.crc32((self.c_support_code() + call).encode()),)

    def c_code(self, node: Any, name: str, inputs: Any, outputs: Any, sub: Any) -> str:
        """Return the code of one call."""
        q, pack, slope, weights = inputs
        value, gradient = outputs
        return f"""
        npy_intp dim_{name} = PyArray_DIMS({q})[0];
        Py_XDECREF({value});
        {value} = (PyArrayObject*)PyArray_EMPTY(0, NULL, NPY_DOUBLE, 0);
        Py_XDECREF({gradient});
        {gradient} = (PyArrayObject*)PyArray_EMPTY(1, &dim_{name}, NPY_DOUBLE, 0);
        if (!{value} || !{gradient}) {{ {sub["fail"]} }}
        if (!PyArray_ISCARRAY_RO({q}) || !PyArray_ISCARRAY_RO({pack}) || !PyArray_ISCARRAY_RO({slope})
            || !PyArray_ISCARRAY_RO({weights}) || PyArray_DIMS({slope})[0] != dim_{name}
            || ((double*)PyArray_DATA({pack}))[0] != dim_{name}) {{
            PyErr_SetString(PyExc_ValueError, "position and reference must be contiguous and of one dimension");
            {sub["fail"]}
        }}
        *(double*)PyArray_DATA({value}) = {self.function}(
            (const double*)PyArray_DATA({q}), (const double*)PyArray_DATA({pack}), (const double*)PyArray_DATA({slope}),
            (const double*)PyArray_DATA({weights}), (double*)PyArray_DATA({gradient}));
        """


class CompiledReference:
    """Log density and gradient of one reference, as `bread.backends.pymc.density.gradients` calls them.

    Parameters
    ----------
    name : str
        The C function.
    pack : ndarray
        The reference, as that function reads it.
    """

    def __init__(self, name: str, pack: FloatArray) -> None:
        self._name, self._pack, self._function = name, pack, _function(name)
        self._nothing, self._alone = np.zeros(int(pack[0])), np.array([1.0, 0.0])

    def __reduce__(self) -> tuple[type[CompiledReference], tuple[str, FloatArray]]:
        """Leave out the compiled operation, of which every process has its own."""
        return CompiledReference, (self._name, self._pack)

    def __call__(self, position: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient, shape (n,), at a position."""
        value, gradient = self._function(np.ascontiguousarray(position), self._pack, self._nothing, self._alone)
        return value.item(), gradient

    def mixed(self, position: FloatArray, slope: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return log density, and ``weights[0]`` times its gradient plus ``weights[1]`` times ``slope``.

        A model's compiled gradient may be a view with strides, such as PyTensor's of a Cholesky factor.
        """
        position, slope = np.ascontiguousarray(position), np.ascontiguousarray(slope)
        value, gradient = self._function(position, self._pack, slope, weights)
        return value.item(), gradient


def compiled_base(reference: object) -> CompiledReference | None:
    """Return log density and gradient of a reference, compiled; None where there is no compiler, or no code for it.

    A PyTensor mode that the user chose is respected: nothing is compiled there.
    """
    module = _MODULES.get(type(reference))
    pack = None if module is None or compile_mode() is None else module.packed(reference)
    return None if module is None or pack is None else CompiledReference(module.NAME, pack)


@cache
def _function(name: str) -> Callable[..., Any]:
    inputs = [pt.dvector() for _ in range(4)]
    function: Callable[..., Any] = pytensor.function(inputs, ReferenceDensity(name)(*inputs), mode=Mode("cvm", None))
    function.trust_input = True  # type: ignore[attr-defined]
    return function
