"""Where a user's file makes a mesh and sets it, and the edits that make it the plan's there."""

from __future__ import annotations

import ast

from shardcore.plan.edits import Edits

_MESHES = frozenset(("jax.make_mesh", "make_mesh", "jax.sharding.Mesh", "sharding.Mesh", "Mesh"))
_ABSTRACT = frozenset(("jax.sharding.AbstractMesh", "sharding.AbstractMesh", "AbstractMesh"))
_SETTERS = frozenset(("set_mesh", "use_mesh", "use_abstract_mesh"))


def give_mesh(tree: ast.Module, edits: Edits, mesh: str, abstract: str) -> list[str]:
    """Have a file make the plan's mesh where it makes one, and set it; return what is left to do.

    Args:
        tree: the file.
        edits: the edits of its text.
        mesh: the code that makes the mesh.
        abstract: the code that makes it without devices.
    """
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    left = []
    for names, new in ((_MESHES, mesh), (_ABSTRACT, abstract)):
        own = [call for call in calls if ast.unparse(call.func) in names and call.args]
        if len(own) == 1:
            edits.replace_node(own[0], new)
        elif own:
            lines = ", ".join(str(call.lineno) for call in own)
            left.append(f"lines {lines} make meshes: that of the step is {new}")
    is_set = any(ast.unparse(call.func).rpartition(".")[2] in _SETTERS for call in calls)
    if not is_set and not _is_set_by(tree, edits, mesh):
        left.append(f"run the step under its mesh: jax.set_mesh({mesh})")
    return left


def _is_set_by(tree: ast.Module, edits: Edits, mesh: str) -> bool:
    """Whether the mesh could be set: behind the assignment of a mesh, or first where the file is
    run as a script."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        [target, *others] = node.targets
        is_mesh = ast.unparse(node.value.func) in _MESHES and node.value.args
        if is_mesh and not others and isinstance(target, ast.Name):
            indent = " " * node.col_offset
            last = node.end_lineno or node.lineno
            edits.insert_line(last, f"{indent}jax.set_mesh({target.id})")
            return True
    for node in tree.body:
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            first = node.body[0]
            indent = " " * first.col_offset
            edits.insert_line(first.lineno - 1, f"{indent}jax.set_mesh({mesh})")
            return True
    return False
