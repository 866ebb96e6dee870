"""Writes a plan as code that a person would write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shardcore.calculus.partition_spec import spec_text
from shardcore.plan.user_trees import path, port_rules

if TYPE_CHECKING:
    from shardcore.plan.answer import Plan

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
IMPORTS = {
    "re": "import re",
    "jax": "import jax",
    "NamedSharding": "from jax.sharding import NamedSharding",
    "P": "from jax.sharding import PartitionSpec as P",
}
"""The imports of the code, by the names that they bind."""
_BY_RULES = """

def by_rules(rules, tree):
    def sharding_of(path, leaf):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        spec = next(spec for rule, spec in rules if re.fullmatch(rule, name))
        return NamedSharding(mesh, spec)

    return jax.tree_util.tree_map_with_path(sharding_of, tree)
"""


def code(plan: Plan) -> str:
    """Return ``plan`` as code: the mesh, the rules, functions that apply them to arguments and
    results, and the constraints."""
    imports = "\n".join(IMPORTS.values()).replace("\nimport jax", "\n\nimport jax")
    return f"{imports}\n\n{definitions(plan)}{''.join(_constraints(plan))}"


def definitions(plan: Plan) -> str:
    """Return the part of the code before the function, without imports."""
    mesh = plan.mesh.shape
    lines = [f"mesh = jax.make_mesh({tuple(mesh.values())}, {tuple(mesh)})"]
    roots = list(dict.fromkeys(path(port).split("/")[0] for port in plan.result.arguments()))
    if not roots or not all(map(_PLAIN.fullmatch, roots)):
        # A program without paths has its arguments in order.
        lines.append("in_shardings = (")
        lines += [f"    {_sharding(spec)}," for spec in plan.in_shardings]
        return "\n".join((*lines, ")\n"))
    given, named = ", ".join(roots), ", ".join(f'"{root}": {root}' for root in roots)
    lines += [*_rules("RULES", plan.rules)]
    text = "\n".join(lines) + f"\n{_BY_RULES}"
    taken = ", ".join(f'found["{root}"]' for root in roots)
    text += f"\n\ndef in_shardings({given}):\n    found = by_rules(RULES, {{{named}}})\n"
    text += f"    return ({taken}{',' if len(roots) == 1 else ''})\n"
    if _says_results(plan):
        rules = port_rules(plan.result.results())
        text += "\n\n" + "\n".join(_rules("RESULT_RULES", rules)) + "\n"
        text += "\n\ndef out_shardings(results):\n    return by_rules(RESULT_RULES, results)\n"
    return text


def _says_results(plan: Plan) -> bool:
    """Whether results need annotations, because they would be sharded differently otherwise."""
    results = {port.label or port.name for port in plan.result.results()}
    return any(name in results for each in plan.specs for name in plan.session.targets(each))


def _rules(name: str, rules: Mapping[str, Any]) -> Iterator[str]:
    yield f"{name} = ["
    for rule, spec in rules.items():
        yield f"    ({_raw(rule)}, {spec_text(spec)}),"
    yield "]"


def _constraints(plan: Plan) -> Iterator[str]:
    """The constraints, each under a comment with the location of the value."""
    if plan.constraints:
        yield "\n# Where the function makes these values, under the mesh, jax.set_mesh(mesh):\n"
    for each in plan.constraints:
        yield f"# {each.place or each.target}\n# {each.line}\n"


def _sharding(spec: object) -> str:
    return "None" if spec is None else f"NamedSharding(mesh, {spec_text(spec)})"


def _raw(rule: str) -> str:
    return f'r"{rule}"' if '"' not in rule else repr(rule)
