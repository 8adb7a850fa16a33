"""The version of the installed distribution."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("bread-mcmc")
except PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "0.0.0"
