"""Writes a plan as code that a person would write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shardcore.calculus.partition_spec import spec_text
from shardcore.plan.literal import written, written_tuple
from shardcore.plan.stated import GRADIENT
from shardcore.plan.user_trees import argument_rules, path, result_rules

if TYPE_CHECKING:
    from shardcore.pipeline import Candidate, Pipeline
    from shardcore.plan.answer import Plan
    from shardcore.signature import Signature

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
        return next((spec for rule, spec in rules if re.fullmatch(rule, name)), None)

    return jax.tree_util.tree_map_with_path(spec_of, tree)
"""
_SHARDED = """

def sharded(rules, root, tree):
    def placed(path, leaf):
        name = f"{root}/{jax.tree_util.keystr(path, simple=True, separator='/')}".strip("/")
        spec = next((spec for rule, spec in rules if re.fullmatch(rule, name)), None)
        return leaf if spec is None else jax.lax.with_sharding_constraint(leaf, spec)

    return jax.tree_util.tree_map_with_path(placed, tree)
"""
_FREE = """@partial(jax.custom_jvp, nondiff_argnums=(1,))
def constrained(x, spec):
    return jax.lax.with_sharding_constraint(x, spec)


constrained.defjvp(lambda spec, primals, tangents: (constrained(*primals, spec), *tangents))
"""
_GRADIENT = """@partial(jax.custom_vjp, nondiff_argnums=(1,))
def constrained_gradient(x, spec):
    return x


constrained_gradient.defvjp(
    lambda x, spec: (x, None),
    lambda spec, _, gradient: (jax.lax.with_sharding_constraint(gradient, spec),),
)
"""
CONSTRAINTS = {"constrained": _FREE, GRADIENT: _GRADIENT}
"""Functions that constrain a value and leave its gradient free, or constrain its gradient alone."""
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
    lines = [*mesh_definition(plan).splitlines(), "", ""]
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
    lines += [*_rules("RULES", argument_rules(plan))]
    text = "\n".join(lines) + f"\n{_BY_RULES}"
    taken = ", ".join(f'found["{root}"]' for root in roots)
    text += f"\n\ndef in_shardings({given}):\n    found = by_rules(RULES, {{{named}}})\n"
    text += f"    return ({taken}{',' if len(roots) == 1 else ''})\n"
    if plan.stated.results:
        text += "\n\n" + "\n".join(_rules("RESULT_RULES", result_rules(plan))) + "\n"
        text += "\n\ndef out_shardings(results):\n    return by_rules(RESULT_RULES, results)\n"
    return text


def mesh_definition(plan: Plan) -> str:
    """Return the function that makes the mesh of ``plan``."""
    return f"def make_mesh():\n    return {plan.placement.code}\n"


def in_constant(plan: Plan, taken: Signature) -> str:
    """Return the shardings of the positional arguments as an expression.

    Raises:
        UnwritableError: a tree has containers that no code makes.
    """
    ports, specs = plan.result.arguments(), plan.stated.arguments
    return written_tuple(
        taken.positional,
        lambda leaf: spec_text(specs.get(ports[leaf].name)),
        len("IN_SHARDINGS = "),
    )


def out_constant(plan: Plan, taken: Signature) -> str:
    """Return the shardings of the results as an expression.

    Raises:
        UnwritableError: as for :func:`in_constant`.
    """
    ports, specs = plan.result.results(), plan.stated.results
    return written(
        taken.results,
        lambda leaf: spec_text(specs.get(ports[leaf].name)),
        len("OUT_SHARDINGS = "),
    )


def body_definitions(plan: Plan, arguments: bool, results: bool) -> str:
    """Return the rules, of arguments and of results if these are asked for, and the function that
    constrains them within the step."""
    lines = [*_rules("RULES", argument_rules(plan)), ""] if arguments else []
    if results:
        lines += [*_rules("RESULT_RULES", result_rules(plan)), ""]
    return "\n".join(lines) + _SHARDED


def planned(plan: Plan, function: str, options: Mapping[str, str], is_joined: bool) -> str:
    """Return a function that returns what ``function`` returns, a step, its arguments and options
    of :func:`shardcore.jax.lower`, with the mesh of ``plan`` and these options.

    Args:
        plan: the plan.
        function: the name of the function.
        options: the options, as code, which may take ``results``, the shapes of the results.
        is_joined: whether it returns a tuple of the arguments, and maybe options behind it.
    """
    makes_results = "results" in options.get("out_shardings", "")
    taken, given = "arguments, *options", "dict(*options) | planned"
    if not is_joined:
        taken, given = "*arguments", "planned"
    made = ""
    if makes_results:
        made = (
            "    with jax.sharding.use_abstract_mesh(mesh):\n"
            "        results = jax.eval_shape(step, *arguments)\n"
        )
    said = "".join(f", {name}={value}" for name, value in options.items())
    return (
        f"def {function}_planned():\n"
        f"    step, {taken} = {function}()\n"
        f"    mesh = {abstract_mesh(plan)}\n"
        f"{made}"
        f"    planned = dict(mesh=mesh{said})\n"
        f"    return step, arguments, {given}\n"
    )


def abstract_mesh(plan: Plan) -> str:
    """Return the code of the mesh of ``plan`` without devices."""
    shape = plan.whole_mesh.shape
    return f"jax.sharding.AbstractMesh({tuple(shape.values())}, {tuple(shape)})"


def _rules(name: str, rules: Mapping[str, Any]) -> Iterator[str]:
    yield f"{name} = ["
    for rule, spec in rules.items():
        yield f"    ({_raw(rule)}, {spec_text(spec)}),"
    yield "]"


def _constraints(plan: Plan) -> Iterator[str]:
    """The constraints, each under a comment with the location of the value."""
    if any(each.is_gradient for each in plan.constraints):
        yield f"\n\n{_GRADIENT}"
    if plan.constraints:
        yield "\n# Where the function makes these values:\n"
    yield from dict.fromkeys(
        f"# {each.place or each.target}\n# {each.line}\n" for each in plan.constraints
    )


def _raw(rule: str) -> str:
    return f'r"{rule}"' if '"' not in rule else repr(rule)
