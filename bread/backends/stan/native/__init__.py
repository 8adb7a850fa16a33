"""Compiled programs: toolchain, cache, build, and what crosses the border to C++."""
