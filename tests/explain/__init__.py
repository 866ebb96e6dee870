"""Compiled programs explained, held against what XLA's own compilers made of real models."""
