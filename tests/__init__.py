"""Tests; a package, so that no other package of this name hides it."""
