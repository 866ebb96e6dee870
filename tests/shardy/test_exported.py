"""Programs that Shardy exported for XLA propagate like those that it exported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import shardcore.hlo
from shardcore import Module, VerificationError, import_hlo_shardings

jax = pytest.importorskip("jax")

from tests.shardy import hlo_module_cases  # noqa: E402

MESHES = (
    r'mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\22x\22=2, \22y\22=4]>}"}'
)
T = "tensor<8x8xf32>"


def module(body: str, signature: str = f"(%a: {T}) -> {T}", attributes: str = MESHES) -> Module:
    head = f"module @m attributes {{{attributes}}} {{\nfunc.func @main{signature} {{\n"
    return Module.parse(f"{head}{body}\n}}\n}}")


def frontend(**attributes: str) -> str:
    """Frontend attributes of these names and texts."""
    escaped = {name: text.replace('"', "\\22") for name, text in attributes.items()}
    items = (f'xla.sdy.{name} = "{text}"' for name, text in escaped.items())
    return f"mhlo.frontend_attributes = {{{', '.join(items)}}}"


def ports(module: Module) -> list[str]:
    """The shardings of what goes in and comes out."""
    result = module.propagate()
    return [str(port.sharding) for port in (*result.arguments(), *result.results())]


@pytest.mark.parametrize("name", hlo_module_cases.CASES)
def test_hlo_of_jax_is_completed_as_its_stablehlo(name: str) -> None:
    function, shapes, options = hlo_module_cases.CASES[name]
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", True)
    try:
        jax.clear_caches()
        shaped = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
        lowered = jax.jit(function, **options).trace(*shaped).lower(lowering_platforms=("cpu",))
        text, hlo = lowered.as_text(), lowered.as_text("hlo")
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)
    assert "xla.sdy" in hlo
    imported = shardcore.hlo.read(hlo)
    assert "tuple<" not in str(imported)
    assert ports(imported) == ports(Module.parse(text))
    assert "xla.sdy" not in str(import_hlo_shardings(imported)).replace("@xla.sdy", "")


DUMPED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
jax.config.update("jax_use_shardy_partitioner", True)
mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
def over(*spec):
    return NamedSharding(mesh, P(*spec))
def dumped(x, w):
    def step(carry, _):
        carry = jax.lax.with_sharding_constraint(jnp.tanh(carry @ w), over("x", "y"))
        return carry, carry.sum()
    y, sums = jax.lax.scan(step, x, None, length=4)
    def shards(a, b):
        return jax.lax.psum(a, "x"), b + 1
    columns = P(None, "y")
    specs = {"in_specs": (P("x", "y"), columns), "out_specs": (columns, columns)}
    z, more = jax.shard_map(shards, mesh=mesh, **specs)(y, w)
    return z, jax.lax.top_k(y, 3)[0], jnp.sort(y), sums, more
given = jax.ShapeDtypeStruct((16, 64), "float32"), jax.ShapeDtypeStruct((64, 64), "float32")
jax.jit(dumped, in_shardings=(over("x"), over(None, "y"))).lower(*given).compile()
"""


def test_dumps_of_each_stage_until_xla_partitions(tmp_path: Path) -> None:
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=shardy"
    devices = "--xla_force_host_platform_device_count=8"
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"{devices} {flags}"}
    subprocess.run([sys.executable, "-c", DUMPED], env=env, check=True, capture_output=True)
    dumps = [
        *tmp_path.glob("*jit_dumped*before_optimizations.txt"),
        *tmp_path.glob("*jit_dumped*after_shardy-xla*.txt"),
        *tmp_path.glob("shardy/*jit_dumped*/*.mlir"),
    ]
    assert len(dumps) >= 5
    for dump in dumps:
        if dump.suffix == ".mlir":
            found = ports(Module.from_file(dump))
        else:
            found = ports(shardcore.hlo.read(dump.read_text()))
        # Only XLA has rules for the op of MHLO that `top_k` becomes.
        assert found[:3] == ['<@mesh, [{"x"}, {}]>', '<@mesh, [{}, {"y"}]>', '<@mesh, [{}, {"y"}]>']
        assert found[3] in ("None", '<@mesh, [{"x"}, {}]>')
        assert found[4] == '<@mesh, [{"x"}, {"y"}]>'
        assert found[6] == '<@mesh, [{}, {"y"}]>'


def test_open_dims_and_results() -> None:
    constraint = frontend(sharding='#sdy.sharding_per_value<[<@mesh, [{"x"}, {?}]>]>')
    result = frontend(sharding='#sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>')
    found = import_hlo_shardings(
        module(
            '%0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{replicated}", '
            f"{constraint}}} : ({T}) -> {T}\n"
            "%1 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%0) "
            f"{{has_side_effect = true, {result}}} : ({T}) -> {T}\nreturn %1 : {T}",
            f"(%a: {T} {{{frontend(sharding='#sdy.sharding<@mesh, [{}, {}]>')}, "
            f'mhlo.sharding = "{{replicated}}"}}) -> ({T} {{mhlo.sharding = "{{replicated}}"}})',
        )
    )
    text = str(found)
    assert 'sdy.mesh @mesh = <["x"=2, "y"=4]>' in text
    assert 'sdy.sharding_constraint %a <@mesh, [{"x"}, {?}]>' in text
    assert f'-> ({T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}})' in text
    assert f"%a: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}" in text
    assert "mhlo" not in text


def test_the_result_of_an_inlined_function_is_a_constraint_with_open_dims() -> None:
    result = frontend(sharding='#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>')
    found = import_hlo_shardings(
        module(
            f"%0 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%a) {{{result}}} "
            f": ({T}) -> {T}\n%1 = stablehlo.negate %0 : {T}\nreturn %1 : {T}"
        )
    )
    assert 'sdy.sharding_constraint %a <@mesh, [{"x", ?}, {?}]>' in str(found)


def test_unspecified_dims_groups_barriers_and_rules() -> None:
    sharding = frontend(sharding='#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>')
    rule = "#sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}, custom>"
    found = import_hlo_shardings(
        module(
            f"%0 = stablehlo.custom_call @Sharding(%a) {{backend_config = "
            f'"unspecified_dims=[1]", {sharding}}} : ({T}) -> {T}\n'
            f"stablehlo.custom_call @xla.sdy.ShardingGroup(%0) {{has_side_effect = true, "
            f"{frontend(sharding_group_id='21 : i64')}}} : ({T}) -> ()\n"
            "%1 = stablehlo.custom_call @xla.sdy.PropagationBarrier(%0) "
            f"{{{frontend(allowed_direction='1 : i32')}}} : ({T}) -> {T}\n"
            f"%2 = stablehlo.custom_call @f(%1) {{{frontend(sharding_rule=rule)}}} : ({T}) -> {T}\n"
            f"return %2 : {T}"
        )
    )
    text = str(found)
    assert 'sdy.sharding_constraint %a <@mesh, [{"x"}, {?}]>' in text
    assert "sdy.sharding_group %0 group_id=21" in text
    assert "sdy.propagation_barrier %0 allowed_direction=FORWARD" in text
    assert (
        "sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}, custom>" in text
    )


def test_shardings_of_tuples() -> None:
    """XLA has one tuple of all arguments where there are many."""
    arguments = "#sdy.sharding_per_value<[<@mesh, [{\\22x\\22}, {}]>, <@mesh, [{}, {\\22y\\22}]>]>"
    results = "#sdy.sharding_per_value<[<@mesh, [{}, {}]>]>"
    attributes = MESHES[:-1] + (
        f', xla.sdy.tuple_args_shardings = "{arguments}", '
        f'xla.sdy.tuple_results_shardings = "{results}"}}'
    )
    body = f"%0 = stablehlo.add %a, %b : {T}\nreturn %0 : {T}"
    found = import_hlo_shardings(module(body, f"(%a: {T}, %b: {T}) -> {T}", attributes))
    assert [str(port.sharding) for port in (*found.arguments(), *found.results())] == [
        '<@mesh, [{"x"}, {}]>',
        '<@mesh, [{}, {"y"}]>',
        "<@mesh, [{}, {}]>",
    ]


def test_tuples_of_hlo_are_flattened() -> None:
    found = shardcore.hlo.read("""HloModule m, entry_computation_layout={((f32[8]{0}, (f32[8]{0}, f32[4]{0})))->f32[8]{0}}

ENTRY main {
  p = (f32[8]{0}, (f32[8]{0}, f32[4]{0})) parameter(0), sharding={{devices=[2]<=[2]}, {replicated}, {devices=[2]<=[2]}}
  a = f32[8]{0} get-tuple-element(p), index=0
  q = (f32[8]{0}, f32[4]{0}) get-tuple-element(p), index=1
  b = f32[8]{0} get-tuple-element(q), index=0
  t = (f32[8]{0}, f32[8]{0}) tuple(a, b)
  c = f32[8]{0} get-tuple-element(t), index=1
  ROOT r = f32[8]{0} add(a, c)
}""")  # noqa: E501
    arguments = found.arguments()
    assert [argument.type for argument in arguments] == [*["tensor<8xf32>"] * 2, "tensor<4xf32>"]
    result = found.propagate()
    assert [str(p.sharding).count("{}") for p in result.arguments()] == [0, 1, 0]


def test_a_mesh_of_other_axes_stays_beside_that_of_the_notation() -> None:
    """Groups of replicas may be over one."""
    found = import_hlo_shardings(
        Module.parse(f"""sdy.mesh @mesh = <["data"=4]>
func.func @main(%a: {T} {{mhlo.sharding = "{{devices=[2,1]<=[2]}}"}}) -> {T} {{
  return %a : {T}
}}""")
    )
    [argument] = found.arguments()
    assert str(argument.sharding) == '<@mesh_0, [{"x"}, {}]>'
    assert list(found.meshes) == ["mesh_0", "mesh"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f"%0 = stablehlo.custom_call @Sharding(%a) : ({T}) -> {T}\nreturn %0 : {T}",
            "a custom call of Shardy's has no xla.sdy.sharding",
        ),
        (
            f"%0 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%a) : ({T}) -> {T}\n"
            f"return %0 : {T}",
            "@xla.sdy.FuncResultSharding has no sharding of one value",
        ),
        (
            f"stablehlo.custom_call @xla.sdy.ShardingGroup(%a) : ({T}) -> ()\nreturn %a : {T}",
            "a custom call of Shardy's has no xla.sdy.sharding_group_id",
        ),
        (
            f"%0 = stablehlo.custom_call @xla.sdy.PropagationBarrier(%a) : ({T}) -> {T}\n"
            f"return %0 : {T}",
            "a custom call of Shardy's has no xla.sdy.allowed_direction",
        ),
    ],
)
def test_what_is_missing(body: str, message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        import_hlo_shardings(module(body))


def test_mistakes_in_texts_are_shown_where_they_stand() -> None:
    sharding = frontend(sharding='#sdy.sharding<@mesh, [{"q"}, {}]>')
    text = module(f"return %a : {T}", f"(%a: {T} {{{sharding}}}) -> {T}")
    with pytest.raises(VerificationError, match='unknown axis name: "q"') as caught:
        import_hlo_shardings(text)
    assert caught.value.line == 2
