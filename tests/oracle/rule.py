"""Op sharding rules: the factors of the dims of an op's tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# One tensor's mapping: for every dim the indices of its factors, major to minor.
TensorMapping = tuple[tuple[int, ...], ...]


def factor_symbol(factor: int) -> str:
    """Name a factor: i, j, ..., z, z_1, z_2, ..."""
    single = chr(ord("i") + factor)
    return single if single <= "z" else f"z_{factor - (ord('z') - ord('i'))}"


@dataclass(frozen=True)
class OpShardingRule:
    """Factor sizes, the mapping of every operand and result, and the special factors.

    A factor in none of `reduction`, `need_replication` and `permutation` is pass-through.
    """

    factor_sizes: tuple[int, ...]
    operands: tuple[TensorMapping, ...]
    results: tuple[TensorMapping, ...]
    reduction: tuple[int, ...] = ()
    need_replication: tuple[int, ...] = ()
    permutation: tuple[int, ...] = ()
    blocked: tuple[int, ...] = ()
    is_custom: bool = False

    @property
    def tensors(self) -> tuple[TensorMapping, ...]:
        return self.operands + self.results

    def is_pass_through(self, factor: int) -> bool:
        return factor not in self.reduction + self.need_replication + self.permutation

    def shape(self, mapping: TensorMapping) -> tuple[int, ...]:
        """Return the shape of the tensor whose dims are the products of their factors."""
        shape = []
        for factors in mapping:
            size = 1
            for factor in factors:
                size *= self.factor_sizes[factor]
            shape.append(size)
        return tuple(shape)

    def __str__(self) -> str:
        text = f"({_mappings_text(self.operands)})->({_mappings_text(self.results)})"
        if self.factor_sizes:
            sizes = (f"{factor_symbol(f)}={size}" for f, size in enumerate(self.factor_sizes))
            text += " {" + ", ".join(sizes) + "}"
        for name, factors in (
            ("reduction", self.reduction),
            ("need_replication", self.need_replication),
            ("permutation", self.permutation),
            ("blocked_propagation", self.blocked),
        ):
            if factors:
                text += f" {name}={{{', '.join(map(factor_symbol, factors))}}}"
        return f"<{text}{', custom' if self.is_custom else ''}>"


def _mappings_text(mappings: Iterable[TensorMapping]) -> str:
    def dim_text(factors: Sequence[int]) -> str:
        return "".join(map(factor_symbol, factors))

    return ", ".join("[" + ", ".join(map(dim_text, mapping)) + "]" for mapping in mappings)


def identity_rule(shape: Sequence[int], num_operands: int = 1) -> OpShardingRule:
    """Build the rule of an op whose tensors all have the shape `shape` and the same factors."""
    mapping = tuple((dim,) for dim in range(len(shape)))
    return OpShardingRule(tuple(shape), (mapping,) * num_operands, (mapping,))
