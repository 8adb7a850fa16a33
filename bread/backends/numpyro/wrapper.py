"""What a user hands over: a NumPyro model is a plain function, and says nothing of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bread.errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class Model:
    """A NumPyro model with the arguments that it is called with, data included.

    Parameters
    ----------
    function : callable
        The model, as ``numpyro.infer.NUTS`` takes it. Sites with ``obs=`` are the data.
    args : tuple
        Its positional arguments.
    kwargs : mapping of str to object
        Its named arguments.

    Raises
    ------
    InvalidArgumentError
        ``function`` cannot be called, ``args`` is no tuple, or ``kwargs`` is no mapping.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidArgumentError(
                "function must be a NumPyro model, a function with numpyro.sample statements; received an object of "
                f"type {type(self.function).__name__!r}. Pass the function itself, not what it returns."
            )
        if not isinstance(self.args, tuple):
            raise InvalidArgumentError(
                f"args must be the tuple of positional arguments; received a {type(self.args).__name__}. "
                "Write args=(x, y), or args=(y,) for one."
            )
        if not isinstance(self.kwargs, Mapping):
            raise InvalidArgumentError(
                f"kwargs must be a dict of named arguments; received a {type(self.kwargs).__name__}. "
                'Write kwargs={"y": y}.'
            )
