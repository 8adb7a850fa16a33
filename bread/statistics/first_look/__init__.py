"""Tests of draws by gradients alone."""
