"""Programs of Shardy's dialect of pipelines, `mpmd`: sound ones, wrong ones, ones to propagate.

They are in files, each behind `// ----- name`. Sound and wrong ones are bodies of a function.
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
HEAD = "// ----- "
TOPOLOGY = (
    '#mpmd.topology<<"first" : <["x"=2, "y"=4]>>, <"last" : <["x"=2, "y"=4]>>, <"odd" : <["z"=3]>>>'
)
ALIASES = """\
!a = !mpmd.mesh_tensor<"first", tensor<8x16xf32>>
!b = !mpmd.mesh_tensor<"last", tensor<8x16xf32>>
!odd = !mpmd.mesh_tensor<"odd", tensor<8x16xf32>>
!split = !mpmd.mesh_tensor<"first", tensor<8x16xf32>, sharding=<@mesh, [{"y"}, {"x", ?}]>>
!host = !mpmd.mesh_tensor<"first", tensor<8x16xf32>, sharding=<@mesh, [{}, {?}], \
replicated={"x"}>, memory_kind="pinned_host">
!t = tensor<8x16xf32>
"""
"""The types of the programs."""
ARGUMENTS = "%a: !a, %b: !b, %o: !odd, %s: !split, %h: !host, %t: !t, %token: !stablehlo.token"
FUNCTIONS = """
func.func private @spmd(%x: !t) -> !t attributes {mesh_shape = #sdy.mesh<["x"=2, "y"=4]>} {
  return %x : !t
}
func.func private @pipeline(%x: !a) -> !a
    attributes {topology = #mpmd.topology<<"first" : <["x"=2, "y"=4]>>>} {
  return %x : !a
}
"""
"""The functions that bodies call."""


def in_function(body: str, topology: str = TOPOLOGY) -> str:
    """A module with a function that has ``body``."""
    return (
        f'{ALIASES}sdy.mesh @mesh = <["x"=2, "y"=4]>\n'
        f"func.func public @main({ARGUMENTS}) attributes {{topology = {topology}}} {{\n"
        f"{body}\n  return\n}}\n{FUNCTIONS}"
    )


def sections(file: str) -> dict[str, str]:
    """The texts in a file, by name."""
    parts = (HERE / file).read_text().split(HEAD)[1:]
    named = (part.split("\n", 1) for part in parts)
    return {name: text.strip("\n") for name, text in named}


def sound() -> dict[str, str]:
    """Programs with each op of the dialect."""
    return {name: in_function(body) for name, body in sections("sound.mlir").items()}


def wrong() -> dict[str, str]:
    """Programs that are refused."""
    return {name: in_function(body) for name, body in sections("wrong.mlir").items()}


def to_propagate() -> dict[str, str]:
    """Programs with shardings."""
    texts = sections("propagation.mlir").items()
    return {name: ALIASES + text.replace("TOPOLOGY", TOPOLOGY) for name, text in texts}
