"""Whether the data look like the model's."""
