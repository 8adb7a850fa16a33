"""`bread.resume`: a check goes on from its checkpoint alone."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from bread.errors import InvalidArgumentError
from bread.jobs.store import Store
from bread.report.types import Report
from bread.scratch import scratch_folder
from bread.verbs.check import check
from bread.verbs.checkpoint import CALL, StoredFile, folder_of


def resume(checkpoint: Any, *, cores: int | None = None, executor: Any = None, progressbar: bool = True) -> Report:
    """Go on with the check that a checkpoint is of, and return its report.

    The same as the call of `bread.check` that made the checkpoint, made again: what was finished is not run again, and
    the report is bit-equal to that of a check that was never stopped. Of a check that had finished the report comes at
    once.

    Parameters
    ----------
    checkpoint : path
        The folder. It holds model, data and arguments as pickles, and reading those can run any code: resume only
        what you or someone you trust has made.
    cores : int, optional
        Processes; by default those that the first call asked for.
    executor : object, optional
        Where chains run, as in `bread.check`.
    progressbar : bool, default True
        Show progress, on stderr.

    Returns
    -------
    InferenceData or DataTree
        The report of `bread.check`.

    Raises
    ------
    InvalidArgumentError
        There is no checkpoint, another check uses it, it is damaged as a whole, packages have other versions now, or
        the call could not be kept (a model that cannot be pickled): then make the call itself again.
    """
    store = Store(folder_of(checkpoint), must_exist=True)
    try:
        found = store.get(CALL)
    finally:
        store.close()
    call = _unpacked(found.value if found is not None else "it is damaged, or the check never began", store.folder)
    with scratch_folder() as folder:
        call = {name: _on_disk(value, folder) for name, value in call.items()}
        if cores is not None:
            call["cores"] = cores
        return check(**{**call, "executor": executor, "progressbar": progressbar, "checkpoint": checkpoint})


def _unpacked(packed: bytes | str, folder: Path) -> dict[str, Any]:
    why = "" if isinstance(packed, bytes) else packed
    if isinstance(packed, bytes):
        try:
            call: dict[str, Any] = pickle.loads(packed)
            return call
        except Exception as error:  # a module of the user's that is not there
            why = f"{type(error).__name__}: {error}"
    raise InvalidArgumentError(
        f"The call that the checkpoint '{folder}' is of cannot be read ({why}). Make that call of bread.check again: "
        "it goes on where it stopped."
    )


def _on_disk(value: Any, folder: Path) -> Any:
    """Return a value with its files written below ``folder``, each under its own name."""
    if isinstance(value, list):
        return [_on_disk(item, folder) for item in value]
    if not isinstance(value, StoredFile):
        return value
    place = folder / str(len(list(folder.iterdir())))
    place.mkdir()
    (place / value.name).write_bytes(value.content)
    return str(place / value.name)
