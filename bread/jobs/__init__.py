"""How tasks run: processes, interrupts, checkpoints, progress."""
