"""What a user hands over: a WebPPL program with its data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bread.errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class Model:
    """A WebPPL program with its data; Node.js and the npm package ``webppl`` run it.

    The program defines a function ``model`` of the data, which draws by ``sample`` (or ``gaussian`` and the like),
    marks data by ``observe(distribution, data.y[i])``, and returns an object that names its sites::

        var model = function(data) {
          var mu = gaussian(0, 10);
          map(function(y) { observe(Gaussian({mu: mu, sigma: 1}), y); }, data.y);
          return {mu: mu};
        };

    Parameters
    ----------
    program : str or path
        Its text, or the path of a file that ends in ``.wppl``.
    data : mapping of str to numbers, booleans, or arrays or nested lists of them
        What ``model`` is called with. Variables that are not observed may hold anything that JSON can.
    observed : str or sequence of str
        Names of those that are observed: they are simulated. Each of their elements must be observed once, as it is.
    updates : int, optional
        Proposals of WebPPL's kernel, each of one site, that make a transition. By default as many as there are sites.
        1 is what WebPPL's AIS and the paper count as a step.
    packages : sequence of path, optional
        Folders of WebPPL packages that the program uses, as ``webppl --require`` takes them.
    node_modules : path, optional
        Folder where the npm package ``webppl`` is installed. By default where Node.js finds it: `NODE_PATH`, or the
        current folder.
    node : str, optional
        Node.js itself.

    Raises
    ------
    InvalidArgumentError
        An argument is not of these kinds, or the file cannot be read.

    Notes
    -----
    The program runs as Node.js runs any JavaScript: it is no sandbox.
    """

    program: str | os.PathLike[str]
    data: Mapping[str, Any]
    observed: str | Sequence[str]
    updates: int | None = None
    packages: Sequence[str | os.PathLike[str]] = ()
    node_modules: str | os.PathLike[str] | None = None
    node: str = "node"

    def __post_init__(self) -> None:
        if not isinstance(self.program, (str, os.PathLike)):
            raise InvalidArgumentError(
                f"program must be the text of a WebPPL program or the path of one; received an object of type "
                f"{type(self.program).__name__!r}."
            )
        if not isinstance(self.data, Mapping) or not all(isinstance(name, str) for name in self.data):
            raise InvalidArgumentError(
                f'data must be a dict from names to values; received {self.data!r}. Write data={{"y": y}}.'
            )
        names = self.names_observed
        if not names or not all(isinstance(name, str) and name in self.data for name in names):
            raise InvalidArgumentError(
                f"observed must name variables of the data ({', '.join(self.data) or 'none'}); received "
                f"{self.observed!r}."
            )
        is_count = isinstance(self.updates, (int, np.integer)) and not isinstance(self.updates, bool)
        if self.updates is not None and not (is_count and self.updates >= 1):
            raise InvalidArgumentError(
                f"updates must be a whole number of proposals, at least 1; received {self.updates!r}. Leave it out for "
                "as many as there are sites."
            )
        if isinstance(self.packages, (str, os.PathLike)):
            raise InvalidArgumentError(
                f"packages must be a sequence of folders; received {self.packages!r}. Write packages=[folder]."
            )

    @property
    def names_observed(self) -> tuple[str, ...]:
        """Names of the observed variables."""
        return (self.observed,) if isinstance(self.observed, str) else tuple(self.observed)

    def text(self) -> tuple[str, str]:
        """Return the name of the program and its text.

        Raises
        ------
        InvalidArgumentError
            The file cannot be read.
        """
        given = os.fspath(self.program)
        if isinstance(self.program, str) and not ("\n" not in given and given.endswith(".wppl")):
            return "model", given
        try:
            return Path(given).stem, Path(os.path.expanduser(given)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(
                f"program={given!r} cannot be read: {error}. Pass the path of a WebPPL program, or its text."
            ) from error
