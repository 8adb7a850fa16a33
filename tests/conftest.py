"""Settings for the whole test run."""

import os
import signal

os.environ.setdefault("MPLBACKEND", "Agg")

# A job that a shell starts in the background ignores the keyboard interrupt, as do its children; some tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
