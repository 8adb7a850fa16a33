"""C code of references' densities."""
