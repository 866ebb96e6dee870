"""``shardcore bench``: public measured training steps, rebuilt as JAX programs and costed.

Needs jax to rebuild programs; tables and records of rows do not.
"""
