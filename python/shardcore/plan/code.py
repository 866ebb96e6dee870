"""Writes a plan as code that a person would write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shardcore.calculus.partition_spec import spec_text
from shardcore.plan.user_trees import path, port_rules

if TYPE_CHECKING:
    from shardcore.pipeline import Candidate, Pipeline
    from shardcore.plan.answer import Plan

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
IMPORTS = {
    "re": "import re",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "partial": "from functools import partial",
    "checkpoint_name": "from jax.ad_checkpoint import checkpoint_name",
    "mesh_utils": "from jax.experimental import mesh_utils",
    "P": "from jax.sharding import PartitionSpec as P",
}
"""The imports of the code, by what they name."""
_ALWAYS = ("re", "jax", "P")
_BY_RULES = """

def by_rules(rules, tree):
    def spec_of(path, leaf):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        return next(spec for rule, spec in rules if re.fullmatch(rule, name))

    return jax.tree_util.tree_map_with_path(spec_of, tree)
"""
_USE = """
# Under the mesh, jax.set_mesh(make_mesh()), these are in_shardings and out_shardings of jax.jit.
"""


def code(plan: Plan) -> str:
    """Return ``plan`` as code: the mesh, rules and functions that apply them to the arguments and
    results of the function, and the constraints."""
    text = f"{definitions(plan)}{''.join(_constraints(plan))}{_USE}"
    used = {line for name, line in IMPORTS.items() if name in _ALWAYS or name in text}
    own = sorted((line for line in used if "jax" not in line), key=_import_key)
    others = sorted((line for line in used if "jax" in line), key=_import_key)
    return "\n".join((*own, "", *others, "", text))


def _import_key(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line


def pipeline_code(found: Pipeline) -> str:
    """Return the function that takes the place of the scan over the layers, as ``found`` has them.

    Raises:
        PlanError: stages have no equal numbers of layers (``schedule``).
    """
    from shardcore.pipeline.code import definition

    best = found.best
    sizes = len(found.layers.layers), best.stages, best.turns, best.micro_batches
    return definition(_loop(best), *sizes)


def _loop(best: Candidate) -> str:
    """The schedule that a loop has: of several chunks a stage, or of one."""
    return "circular" if best.turns > 1 else "gpipe"


def _pipeline_words(best: Candidate) -> Iterator[str]:
    """What is said before the function of a pipeline."""
    yield f"# {best.stages} stages by {best.schedule}, {best.micro_batches} micro-batches."
    yield f"# Layers of the chunks: {', '.join(map(str, best.cut))}."
    yield f"# This loop runs as many in each chunk, by {_loop(best)}."
    yield "# Call pipelined(layer, x, weights, mesh) where layers are scanned."


def definitions(plan: Plan) -> str:
    """Return what of the code stands outside of the function, but for imports."""
    lines = ["def make_mesh():", f"    return {plan.placement.code}", "", ""]
    if plan.kept is not None:
        lines[:0] = [plan.kept.code(), "", ""]
    if plan.pipeline is not None:
        words = _pipeline_words(plan.pipeline.best)
        lines[:0] = [*words, pipeline_code(plan.pipeline).rstrip(), "", ""]
    roots = list(dict.fromkeys(path(port).split("/")[0] for port in plan.result.arguments()))
    if not roots or not all(map(_PLAIN.fullmatch, roots)):
        # A program without paths has its arguments in order.
        lines.append("in_shardings = (")
        lines += [f"    {None if spec is None else spec_text(spec)}," for spec in plan.in_shardings]
        return "\n".join((*lines, ")\n"))
    given, named = ", ".join(roots), ", ".join(f'"{root}": {root}' for root in roots)
    lines += [*_rules("RULES", plan.rules)]
    text = "\n".join(lines) + f"\n{_BY_RULES}"
    taken = ", ".join(f'found["{root}"]' for root in roots)
    text += f"\n\ndef in_shardings({given}):\n    found = by_rules(RULES, {{{named}}})\n"
    text += f"    return ({taken}{',' if len(roots) == 1 else ''})\n"
    if plan.stated.results:
        rules = port_rules(plan.result.results(), plan.stages, plan.layers)
        text += "\n\n" + "\n".join(_rules("RESULT_RULES", rules)) + "\n"
        text += "\n\ndef out_shardings(results):\n    return by_rules(RESULT_RULES, results)\n"
    return text


def planned(plan: Plan, function: str) -> str:
    """Return a function that returns what ``function`` returns, a step, its arguments and options
    of :func:`shardcore.jax.lower`, with the mesh and the shardings of ``plan``."""
    said, made = "mesh=mesh, in_shardings=in_shardings(*arguments)", ""
    if plan.stated.results:
        said += ", out_shardings=out_shardings(results)"
        made = (
            "    with jax.sharding.use_abstract_mesh(mesh):\n"
            "        results = jax.eval_shape(step, *arguments)\n"
        )
    shape = plan.whole_mesh.shape
    return (
        f"\n\ndef {function}_planned():\n"
        f"    step, arguments, *options = {function}()\n"
        f"    mesh = jax.sharding.AbstractMesh({tuple(shape.values())}, {tuple(shape)})\n"
        f"{made}    return step, arguments, dict(*options) | dict({said})\n"
    )


def _rules(name: str, rules: Mapping[str, Any]) -> Iterator[str]:
    yield f"{name} = ["
    for rule, spec in rules.items():
        yield f"    ({_raw(rule)}, {spec_text(spec)}),"
    yield "]"


def _constraints(plan: Plan) -> Iterator[str]:
    """The constraints, each under a comment with the location of the value."""
    if plan.constraints:
        yield "\n# Where the function makes these values:\n"
    for each in plan.constraints:
        yield f"# {each.place or each.target}\n# {each.line}\n"


def _raw(rule: str) -> str:
    return f'r"{rule}"' if '"' not in rule else repr(rule)
