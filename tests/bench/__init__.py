"""Public measured training steps, rebuilt as JAX programs."""
