"""GSPMD's notation of shardings: parsing, printing, and conversion to and from named axes.

Source: "GSPMD: General and Scalable Parallelization for ML Computation Graphs" (arXiv:2105.04663),
and the sharding attribute of XLA's HLO text.
"""

from shardcore.gspmd.hlo_sharding import HloSharding
from shardcore.gspmd.tiles import TileAssignment

__all__ = ["HloSharding", "TileAssignment"]
