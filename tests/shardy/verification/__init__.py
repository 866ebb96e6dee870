"""Ops of StableHLO, CHLO and func that MLIR accepts, ways to break them, what MLIR says of each.

`python -m tests.shardy.verification` compares all of them with the reference and counts.
"""
