"""Backend for NumPyro models: NumPyro's handlers simulate, its own frozen NUTS or HMC moves chains of the prior path.

Nothing here imports NumPyro until a model is opened (`opened`).
"""
