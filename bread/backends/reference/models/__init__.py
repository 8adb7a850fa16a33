"""The models of the reference backend."""
