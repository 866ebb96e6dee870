"""All ops that can be simulated: importing this module registers every family."""

from __future__ import annotations

from shardcore.simulate import bits as bits
from shardcore.simulate import collectives as collectives
from shardcore.simulate import contract as contract
from shardcore.simulate import control as control
from shardcore.simulate import convert as convert
from shardcore.simulate import convolution as convolution
from shardcore.simulate import custom_calls as custom_calls
from shardcore.simulate import elementwise as elementwise
from shardcore.simulate import fft as fft
from shardcore.simulate import floats as floats
from shardcore.simulate import gather as gather
from shardcore.simulate import indexing as indexing
from shardcore.simulate import linalg as linalg
from shardcore.simulate import manual as manual
from shardcore.simulate import reduce as reduce
from shardcore.simulate import rng as rng
from shardcore.simulate import scatter as scatter
from shardcore.simulate import shapes as shapes
from shardcore.simulate import sort as sort
from shardcore.simulate import special as special
from shardcore.simulate import windows as windows
from shardcore.simulate.registry import PREPARERS

__all__ = ["PREPARERS"]
