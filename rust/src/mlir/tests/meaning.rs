//! The program that the parser makes of a text.

use super::{op, ops, parsed, uses, value, EVERY_SYNTAX};
use crate::attribute::print_sharding;
use crate::index::{Id, ShardingId, TypeId};
use crate::ir::{Direction, OpKind, Payload, Program, Type};

fn sharding(program: &Program, id: ShardingId) -> String {
    program.shardings().get(id).map_or(String::new(), |found| print_sharding(found, program))
}

#[test]
fn shardings_are_on_the_values_they_are_about() {
    let program = parsed(EVERY_SYNTAX);
    let of = |name| sharding(&program, program.sharding(value(&program, name)));
    assert_eq!(of("%arg0"), r#"<@m, [{"x", ?}]>"#);
    assert_eq!(of("%0"), "<@m, []>");
    assert_eq!(of("%22"), r#"<@m, [{"y":(1)2}]>"#);
    assert_eq!(of("%23"), "<@m, [{?}]>");
    assert_eq!(of("%v"), "");
    assert_eq!(of("%w"), r#"<@m, [{"x"}]>"#);
    assert_eq!(of("%25"), "<@m, [{}]>");
    let id = program.func_ids().next().unwrap();
    assert!(program.is_private(id) && program.func_body(id).is_none());
    assert_eq!(sharding(&program, program.func_args(id)[0].sharding), r#"<@m, [{"x"}]>"#);
}

#[test]
fn payloads_say_what_ops_have_beyond_their_dictionary() {
    let program = parsed(EVERY_SYNTAX);
    let payload = |name| program.payload(op(&program, name));
    let is_barrier = |kind| kind == OpKind::PropagationBarrier;
    let barrier = ops(&program).into_iter().find(|&op| is_barrier(program.kind(op))).unwrap();
    let backward = Payload::PropagationBarrier(Direction::Backward);
    assert_eq!(program.payload(barrier), Some(&backward));
    assert!(matches!(payload("%24"), Some(Payload::ManualComputation(axes)) if axes.len() == 1));
    assert!(matches!(payload("%25"), Some(Payload::AxesPerDim(dims, _)) if dims[0].len() == 1));
    let named = |has_in, has_out| {
        matches!(payload("%23"), Some(Payload::NamedComputation {
        has_in_shardings, has_out_shardings, ..
    }) if *has_in_shardings == has_in && *has_out_shardings == has_out)
    };
    assert!(named(false, true));
}

#[test]
fn the_generic_form_means_the_same() {
    let pretty = r#"sdy.mesh @m = <["x"=2]>
func.func private @f(%a: tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>, k = 1 : i32}) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) {
  %0 = sdy.reshard %a <@m, [{?}]> : tensor<2xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@m, [{}]> : tensor<2xf32>
  sdy.sharding_group %1 group_id=7 : tensor<2xf32>
  %2 = call @f(%1) : (tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}
"#;
    let generic = r#""sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "m"}> : () -> ()
"func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@m, [{"x"}]>, k = 1 : i32}], function_type = (tensor<2xf32>) -> tensor<2xf32>, res_attrs = [{sdy.sharding = #sdy.sharding<@m, [{}]>}], sym_name = "f", sym_visibility = "private"}> ({
^bb0(%a: tensor<2xf32>):
  %0 = "sdy.reshard"(%a) <{sharding = #sdy.sharding<@m, [{?}]>}> : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "sdy.all_reduce"(%0) <{out_sharding = #sdy.sharding<@m, [{}]>, reduction_axes = #sdy<axis_ref_list{"x"}>}> : (tensor<2xf32>) -> tensor<2xf32>
  "sdy.sharding_group"(%1) <{group_id = 7 : i64}> : (tensor<2xf32>) -> ()
  %2 = "func.call"(%1) <{callee = @f}> : (tensor<2xf32>) -> tensor<2xf32>
  "func.return"(%2) : (tensor<2xf32>) -> ()
}) : () -> ()
"#;
    let (a, b) = (parsed(pretty), parsed(generic));
    let mesh = |program: &Program| program.meshes().iter().next().map(|row| row.mesh.clone());
    assert_eq!(mesh(&a), mesh(&b));
    let payload = |program: &Program, op| program.payload(op).map(std::mem::discriminant);
    for (x, y) in ops(&a).into_iter().zip(ops(&b)) {
        assert_eq!(
            (a.op_name(x), payload(&a, x), a.op_attrs(x).len()),
            (b.op_name(y), payload(&b, y), b.op_attrs(y).len())
        );
        for (v, w) in a.op_results(x).zip(b.op_results(y)) {
            assert_eq!(sharding(&a, a.sharding(v)), sharding(&b, b.sharding(w)));
        }
    }
    for program in [&a, &b] {
        let id = program.func_ids().next().unwrap();
        assert!(program.is_private(id));
        assert_eq!(program.func_args(id)[0].attrs.len, 1);
        assert_eq!(sharding(program, program.func_results(id)[0].sharding), "<@m, [{}]>");
        assert_eq!(sharding(program, program.sharding(value(program, "%a"))), r#"<@m, [{"x"}]>"#);
    }
}

#[test]
fn uses_are_newest_first_as_in_mlir() {
    let program = parsed(
        r#"func.func @f(%a: tensor<2xf32>) {
  %0 = "x.outer"(%a) ({
    "x.inner"(%a) : (tensor<2xf32>) -> ()
    "x.end"() : () -> ()
  }) : (tensor<2xf32>) -> tensor<2xf32>
  "x.twice"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}"#,
    );
    let expected = [("x.twice", 1), ("x.twice", 0), ("x.outer", 0), ("x.inner", 0)]
        .map(|(n, i)| (n.into(), i));
    assert_eq!(uses(&program, "%a"), expected);
}

#[test]
fn uses_before_the_definition_end_up_in_reverse_order() {
    let program = parsed(
        r#""x.graph"() ({
  "x.a"(%v) : (i32) -> ()
  "x.b"(%v) : (i32) -> ()
  %v = "x.def"() : () -> i32
  "x.c"(%v) : (i32) -> ()
}) : () -> ()"#,
    );
    let expected = [("x.c", 0), ("x.a", 0), ("x.b", 0)].map(|(n, i)| (n.to_owned(), i));
    assert_eq!(uses(&program, "%v"), expected);
}

#[test]
fn types_are_equal_whatever_they_are_called() {
    let program = parsed(
        "!t = tensor<2x?xf32>\nfunc.func private @f(!t, tensor<2x?xf32>, tensor<*xf32>, tensor<2xcomplex<f64>, #x.y<\">\">>)",
    );
    let id = program.func_ids().next().unwrap();
    let types: Vec<TypeId> = program.func_args(id).iter().map(|arg| arg.ty).collect();
    assert_eq!(types[0], types[1]);
    let Type::RankedTensor { shape, element, .. } = &program.types()[types[0]] else { panic!() };
    assert_eq!((shape.as_slice(), element.bits), (&[Some(2), None][..], Some(32)));
    assert!(matches!(program.types()[types[2]], Type::UnrankedTensor(_)));
    let Type::RankedTensor { encoding, element, .. } = &program.types()[types[3]] else { panic!() };
    assert!(encoding.is_some());
    assert_eq!(element.bits, Some(128));
}

#[test]
fn a_signature_leaves_out_names_and_what_rules_cannot_depend_on() {
    let program = parsed(
        r#"func.func @f(%a: tensor<2x2xf32>, %long_name: tensor<2x2xf32>) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.transpose %long_name, dims = [1, 0] {mhlo.frontend_attributes = {a = "b"}} : (tensor<2x2xf32>) -> tensor<2x2xf32> loc("x")
  %2 = stablehlo.transpose %a, dims = [0, 1] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = stablehlo.custom_call @g(%a) {k = 1 : i32} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %4 = stablehlo.custom_call @g(%a) {k = 2 : i32} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %5 = stablehlo.constant dense<0> : tensor<2xi32>
  return
}"#,
    );
    let of = |name| program.signature(op(&program, name));
    assert_eq!(of("%0"), of("%1"));
    assert_ne!(of("%0"), of("%2"));
    assert_ne!(of("%3"), of("%4"));
    assert!(of("%5").is_none());
    assert_eq!(program.signatures()[of("%0")].example.index(), op(&program, "%0").index());
}

#[test]
fn locations_lead_to_the_innermost_place() {
    let program = parsed(
        r#"#a = loc("inner.py":3:14 to :20)
#b = loc("outer.py":9:1)
func.func @f(%x: i32 loc("weights"), %y: i32 {a.b} loc(#b)) {
  %0 = "x.y"() : () -> i32 loc("add"(callsite("name"(#a) at #b)))
  %1 = "x.y"() : () -> i32 loc(fused<"why">["scope", #b, #a])
  %2 = "x.y"() : () -> i32 loc(unknown)
  %3 = "x.y"() : () -> i32 loc(#late)
  return
}
#late = loc("scope"(#a))"#,
    );
    let of = |name| program.value_location(value(&program, name));
    assert_eq!(of("%x").as_deref(), Some("weights"));
    assert_eq!(of("%y").as_deref(), Some("outer.py:9:1"));
    assert_eq!(of("%0").as_deref(), Some("inner.py:3:14"));
    assert_eq!(of("%1").as_deref(), Some("outer.py:9:1"));
    assert_eq!(of("%2"), None);
    assert_eq!(of("%3").as_deref(), Some("inner.py:3:14"));
}
