"""A search that ends where its budget does."""
