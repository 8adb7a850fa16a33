"""Settings for the whole test run."""

import os
import signal
import warnings

os.environ.setdefault("MPLBACKEND", "Agg")

with warnings.catch_warnings():  # ArviZ 0.23 announces its successor once a day, and warnings are errors in tests
    warnings.simplefilter("ignore", FutureWarning)
    import arviz  # noqa: F401

# A job that a shell starts in the background ignores the keyboard interrupt, as do its children; some tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
