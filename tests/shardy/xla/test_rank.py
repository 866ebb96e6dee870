"""Random plans rank by our bytes as they do by XLA's; `benches/rank.py` compares many more."""

from __future__ import annotations

from benches.rank import pairs_of, spearman


def test_equal_figures_share_a_rank() -> None:
    assert spearman([(1, 10), (2, 20), (2, 20), (3, 30)]) == 1
    assert spearman([(1, 30), (2, 20), (3, 10)]) == -1


def test_plans_rank_as_xla_ranks_them() -> None:
    pairs = pairs_of("experts", 8)
    assert len(pairs) == 8
    assert spearman(pairs) >= 0.95
