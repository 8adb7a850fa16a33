"""Evidence along the path, by thermodynamic integration."""
