"""Costs beside what XLA's own compilers say: `shardcore.xla`."""
