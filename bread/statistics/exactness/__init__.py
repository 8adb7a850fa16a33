"""Tests of identities that exact draws obey."""
