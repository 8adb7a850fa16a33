"""Settings for the whole test run."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")
