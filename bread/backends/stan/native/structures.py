"""Structures of the C interface: mirrors of those in cpp/, whose layout is compared when a library is loaded."""

from __future__ import annotations

import ctypes
import json

from bread.errors import BreadError

_POINTER, _INT32, _INT64, _DOUBLE = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_double
_DOUBLES = ctypes.POINTER(_DOUBLE)
CALLBACK = ctypes.CFUNCTYPE(_INT32, _DOUBLES, _DOUBLES, _DOUBLES)


class ControlStruct(ctypes.Structure):
    """`bread_control` of density.hpp: memory that a running call and Python share."""

    _fields_ = (("stop", _INT32), ("unused", _INT32), ("done", _DOUBLE))


class KernelStruct(ctypes.Structure):
    """`bread_kernel` of kernels.hpp."""

    _fields_ = (
        ("name", _INT32), ("max_tree_depth", _INT32), ("max_leapfrogs", _INT32), ("unused", _INT32),
        ("integration_time", _DOUBLE), ("step_size_jitter", _DOUBLE),
    )  # fmt: skip


class ScheduleStruct(ctypes.Structure):
    """`bread_schedule` of chains.hpp."""

    _fields_ = (
        ("n_temperatures", _INT64), ("betas", _POINTER), ("step_sizes", _POINTER), ("inverse_metrics", _POINTER),
        ("is_reverse", _INT32), ("every", _INT32),
    )  # fmt: skip


class ChainsStruct(ctypes.Structure):
    """`bread_chains` of chains.hpp."""

    _fields_ = (
        ("n_chains", _INT64), ("start", _POINTER), ("seeds", _POINTER), ("log_ratio", _POINTER),
        ("state_at_start", _POINTER), ("state_at_end", _POINTER), ("log_start", _POINTER), ("counts", _POINTER),
        ("proposals", _POINTER),
    )  # fmt: skip


class ProposalsStruct(ctypes.Structure):
    """`bread_proposals` of chains.hpp."""

    _fields_ = (("states", _POINTER), ("log_ratio", _POINTER), ("log_uniform", _POINTER))


class ColumnStruct(ctypes.Structure):
    """`bread_column` of overlay.hpp."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("values", _POINTER), ("shape", _POINTER), ("rank", _INT64), ("size", _INT64),
        ("is_int", _INT32), ("unused", _INT32),
    )  # fmt: skip


class ComponentStruct(ctypes.Structure):
    """`bread_component` of mixture.hpp."""

    _fields_ = (
        ("mean", _POINTER), ("scale", _POINTER), ("matrix", _POINTER), ("directions", _POINTER), ("stretch", _POINTER),
        ("degrees", _POINTER), ("rank", _INT64), ("log_factor", _DOUBLE),
    )  # fmt: skip


class NestedStruct(ctypes.Structure):
    """`bread_nested` of nested.hpp."""

    _fields_ = (
        ("driver", _INT64), ("n_components", _INT64), ("components", _POINTER), ("centre", _POINTER),
        ("matrix", _POINTER), ("n_knots", _INT64), ("knots", _POINTER), ("origins", _POINTER), ("widths", _POINTER),
        ("coefficients", _POINTER), ("log_factor", _DOUBLE),
    )  # fmt: skip


class GaugeStruct(ctypes.Structure):
    """`bread_gauge` of rotated.hpp."""

    _fields_ = (
        ("n_rows", _INT64), ("n_columns", _INT64), ("places", _POINTER), ("others", _POINTER), ("frame", _POINTER),
        ("log_volume", _DOUBLE),
    )  # fmt: skip


class PowersStruct(ctypes.Structure):
    """`bread_powers` of factors.hpp."""

    _fields_ = (("n", _INT64), ("exponents", _POINTER), ("values", _POINTER))


class FactorsStruct(ctypes.Structure):
    """`bread_factors` of factors.hpp."""

    _fields_ = (
        ("n_rows", _INT64), ("n_inner", _INT64), ("n_outer", _INT64), ("n_rest", _INT64), ("inner", _POINTER),
        ("outer", _POINTER), ("rest", _POINTER), ("drivers", _POINTER), ("units", _POINTER), ("own", PowersStruct),
        ("curvature", PowersStruct), ("slopes", PowersStruct),
    )  # fmt: skip


class DensityStruct(ctypes.Structure):
    """`bread_density` of reference.hpp."""

    _fields_ = (
        ("n_components", _INT64), ("components", _POINTER), ("n", _INT64), ("coordinates", _POINTER),
        ("jacobians", _POINTER), ("nested", _POINTER), ("gauge", _POINTER), ("factors", _POINTER),
        ("callback", CALLBACK),
    )  # fmt: skip


class PathStruct(ctypes.Structure):
    """`bread_path` of paths.hpp."""

    _fields_ = (("reference", _POINTER), ("law", _POINTER), ("given", _POINTER))


MIRRORED: dict[str, type[ctypes.Structure]] = {
    "bread_control": ControlStruct,
    "bread_kernel": KernelStruct,
    "bread_schedule": ScheduleStruct,
    "bread_chains": ChainsStruct,
    "bread_proposals": ProposalsStruct,
    "bread_column": ColumnStruct,
    "bread_component": ComponentStruct,
    "bread_nested": NestedStruct,
    "bread_gauge": GaugeStruct,
    "bread_powers": PowersStruct,
    "bread_factors": FactorsStruct,
    "bread_density": DensityStruct,
    "bread_path": PathStruct,
}


def require_layout(layout: str) -> None:
    """Compare the structures with those of a compiled driver.

    Parameters
    ----------
    layout : str
        What ``bread_layout`` of cpp/layout.hpp returns.

    Raises
    ------
    BreadError
        They differ: what would be read and written is the wrong memory.
    """
    own = {
        name: [ctypes.sizeof(mirror), {field[0]: getattr(mirror, field[0]).offset for field in mirror._fields_}]
        for name, mirror in MIRRORED.items()
    }
    found = json.loads(layout)
    if found != own:
        different = sorted(name for name in own.keys() | found.keys() if own.get(name) != found.get(name))
        raise BreadError(
            f"The compiled driver has other structures than bread's Python code ({', '.join(different)}). Please "
            "report it, with your compiler and processor."
        )
