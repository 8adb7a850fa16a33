"""Settings for the whole test run."""

import os
import signal

os.environ.setdefault("MPLBACKEND", "Agg")

# A shell that starts a job in the background lets it ignore the keyboard interrupt, and its children too; tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
