"""Errors of bread: each says what is wrong, the rule, the value received and what to do."""

from __future__ import annotations

from typing import Any


class BreadError(Exception):
    """Base class of every error that bread raises on purpose.

    Attributes
    ----------
    report : InferenceData or DataTree or None
        What had been computed when the error was raised, as a valid report; None when nothing was.
    """

    report: Any = None

    def __str__(self) -> str:
        """Return the message on one line, whatever the value that it names looks like."""
        return " ".join(line.strip() for line in super().__str__().splitlines())


class InvalidArgumentError(BreadError, ValueError):
    """An argument has a value that is not allowed."""


class UnsupportedModelError(BreadError, ValueError):
    """The model cannot be simulated or annealed exactly; refused before any computation."""


class UnsupportedKernelError(BreadError, ValueError):
    """The kernel cannot be frozen or reversed, or does not fit the model; refused before any computation."""


class MissingDependencyError(BreadError, ImportError):
    """An optional package is not installed; the message is the pip line that installs it."""


class DensityError(BreadError, ArithmeticError):
    """A density failed (NaN or an exception) outside a kernel, or an exact draw has density zero."""


KNOWN_DEFECT = "Known defect of"  # how a note begins that names a defect of an installed package


class KnownBugWarning(UserWarning):
    """A model or kernel meets a defect of the installed version of another package; the text names the fix."""


class CheckpointWarning(UserWarning):
    """A checkpoint is damaged, cannot be written or compared, or holds results that were not asked for."""
