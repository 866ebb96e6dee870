use super::{Space, Spaces};
use crate::context::RuleSource;
use crate::index::ValueId;
use crate::ir::Program;
use crate::mlir::parse;
use crate::rules::Registry;

const T: &str = "tensor<8x4xf32>";
const ROW: &str = "tensor<1x4xf32>";

fn program(arguments: &str, results: &str, body: &str) -> Program {
    let text = format!("func.func @main({arguments}) -> ({results}) {{\n{body}\n}}");
    let mut program = parse(text.into()).unwrap();
    Registry::builtin().sign(&mut program);
    program
}

fn place(result: &str, operand: &str, to: &str, ty: &str) -> String {
    format!(
        "{result} = stablehlo.custom_call @annotate_device_placement({operand}) {{has_side_effect = true, \
         mhlo.frontend_attributes = {{_xla_buffer_placement = \"{to}\"}}}} : ({ty}) -> {ty}\n"
    )
}

/// The names of the values in `space`, in the order in which they are made.
fn names(program: &Program, spaces: &Spaces, space: Space) -> Vec<String> {
    let is_there = |&value: &ValueId| spaces.takes(space, value);
    program.value_ids().filter(is_there).map(|value| program.value_name(value)).collect()
}

/// What is moved, as `%0 to host`.
fn moves(program: &Program, spaces: &Spaces) -> Vec<String> {
    let of = |it: &super::Move| {
        let to = if it.to == Space::Host { "host" } else { "device" };
        format!("{} to {to}", program.value_name(it.value))
    };
    spaces.moves.iter().map(of).collect()
}

#[test]
fn nothing_is_on_the_host_unless_the_program_says_so() {
    let body = format!("%0 = stablehlo.negate %a : {T}\nreturn %0 : {T}");
    let program = program(&format!("%a: {T} {{mhlo.memory_kind = \"device\"}}"), T, &body);
    let spaces = Spaces::new(&program);
    assert!(names(&program, &spaces, Space::Host).is_empty() && spaces.moves.is_empty());
    assert_eq!(names(&program, &spaces, Space::Device), ["%a", "%0"]);
}

#[test]
fn placements_move_and_those_of_what_is_there_are_idle() {
    let host = format!("{T} {{mhlo.memory_kind = \"pinned_host\"}}");
    let body = place("%0", "%a", "device", T)
        + &place("%1", "%0", "device", T)
        + &format!("%2 = stablehlo.negate %1 : {T}\n")
        + &place("%3", "%2", "unpinned_host", T)
        + &place("%4", "%3", "pinned_host", T)
        + &format!("return %4 : {T}");
    let program = program(&format!("%a: {host}"), &host, &body);
    let spaces = Spaces::new(&program);
    assert_eq!(moves(&program, &spaces), ["%a to device", "%2 to host"]);
    assert_eq!(names(&program, &spaces, Space::Host), ["%a", "%3", "%4"]);
    assert_eq!(spaces.idle.len(), 2);
}

#[test]
fn ops_follow_their_operands_to_the_host() {
    let host = format!("{T} {{mhlo.memory_kind = \"pinned_host\"}}");
    let body = format!(
        "%c = stablehlo.constant dense<2.0> : {T}
         %0 = stablehlo.multiply %a, %c : {T}
         %1 = stablehlo.reshape %0 : ({T}) -> tensor<32xf32>
         %2 = stablehlo.reshape %1 : (tensor<32xf32>) -> {T}
         %3 = stablehlo.add %2, %b : {T}
         return %3 : {T}"
    );
    let program = program(&format!("%a: {host}, %b: {T}"), &host, &body);
    let spaces = Spaces::new(&program);
    // The constant is made of nothing.
    assert_eq!(moves(&program, &spaces), ["%b to host"]);
    assert_eq!(names(&program, &spaces, Space::Host), ["%a", "%0", "%1", "%2", "%3"]);
    let computed: Vec<&str> = program
        .op_ids()
        .filter(|&op| spaces.is_computed_by_host(op))
        .map(|op| program.op_name(op))
        .collect();
    assert_eq!(computed, ["stablehlo.multiply", "stablehlo.add"]);
}

/// A loop over the rows of `%s`, whose body has `%row`, `%i` and `%s`.
fn rows_loop(body: &str, next: &str) -> String {
    format!(
        "%c0 = stablehlo.constant dense<0> : tensor<i32>
         %z = stablehlo.constant dense<0.0> : tensor<f32>
         %init = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> {T}
         %w:2 = stablehlo.while(%i = %c0, %s = %init) : tensor<i32>, {T}
         cond {{
           %n = stablehlo.constant dense<8> : tensor<i32>
           %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %p : tensor<i1>
         }} do {{
           %one = stablehlo.constant dense<1> : tensor<i32>
           %j = stablehlo.add %i, %one : tensor<i32>
           %row = stablehlo.negate %x : {ROW}
           {body}
           stablehlo.return %j, {next} : tensor<i32>, {T}
         }}\n"
    )
}

const INDICES: &str = "tensor<i32>, tensor<i32>";

#[test]
fn what_is_put_into_a_carried_value_is_written_to_its_place() {
    let update = place("%h", "%row", "pinned_host", ROW)
        + &format!(
            "%u = stablehlo.dynamic_update_slice %s, %h, %i, %c0 : ({T}, {ROW}, {INDICES}) -> {T}"
        );
    let body = rows_loop(&update, "%u")
        + &format!(
            "%d = stablehlo.dynamic_slice %w#1, %c0, %c0, sizes = [1, 4] : ({T}, {INDICES}) -> {ROW}
             %e = stablehlo.reshape %d : ({ROW}) -> {ROW}\n"
        )
        + &place("%r", "%e", "device", ROW)
        + &format!("return %r : {ROW}");
    let program = program(&format!("%x: {ROW}"), ROW, &body);
    let spaces = Spaces::new(&program);
    assert_eq!(moves(&program, &spaces), ["%row to host", "%e to device"]);
    let mut found = names(&program, &spaces, Space::Host);
    found.sort();
    found.dedup();
    // Neither the row on the host nor the slice of what is there takes memory by itself.
    assert_eq!(found, ["%init", "%s", "%u", "%w#1"]);
    let on_device = names(&program, &spaces, Space::Device);
    assert!(["%row", "%r", "%i"].iter().all(|name| on_device.contains(&(*name).to_owned())));
    assert!(["%h", "%d", "%e"].iter().all(|name| !on_device.contains(&(*name).to_owned())));
}

#[test]
fn an_update_without_placement_is_moved() {
    let update = format!(
        "%u = stablehlo.dynamic_update_slice %s, %row, %i, %c0 : ({T}, {ROW}, {INDICES}) -> {T}\n"
    ) + &place("%v", "%u", "pinned_host", T);
    let body = rows_loop(&update, "%v") + &format!("return %w#1 : {T}");
    let host = format!("{T} {{mhlo.memory_kind = \"pinned_host\"}}");
    let program = program(&format!("%x: {ROW}"), &host, &body);
    let spaces = Spaces::new(&program);
    assert_eq!(moves(&program, &spaces), ["%row to host"]);
}

#[test]
fn results_of_what_the_host_is_to_compute_are_moved_to_the_device() {
    let host = "{mhlo.frontend_attributes = {_xla_compute_type = \"host\"}}";
    let body = format!(
        "%0 = stablehlo.negate %a : {T}
         %1 = stablehlo.add %0, %0 {host} : {T}
         %2 = stablehlo.tanh %1 {host} : {T}
         %3 = stablehlo.multiply %2, %a : {T}
         return %3 : {T}"
    );
    let program = program(&format!("%a: {T}"), T, &body);
    let spaces = Spaces::new(&program);
    assert_eq!(moves(&program, &spaces), ["%0 to host", "%2 to device"]);
    assert_eq!(names(&program, &spaces, Space::Host), ["%1", "%2"]);
    assert_eq!(names(&program, &spaces, Space::Device), ["%a", "%0", "%2", "%3"]);
}

#[test]
fn what_is_returned_elsewhere_is_moved() {
    let host = format!("{T} {{mhlo.memory_kind = \"pinned_host\"}}");
    let body = format!("%0 = stablehlo.negate %b : {T}\nreturn %0, %a : {T}, {T}");
    let results = format!("{host}, {T} {{mhlo.memory_kind = \"device\"}}");
    let program = program(&format!("%a: {host}, %b: {T}"), &results, &body);
    let spaces = Spaces::new(&program);
    assert_eq!(moves(&program, &spaces), ["%0 to host", "%a to device"]);
    let values: Vec<ValueId> = program.value_ids().collect();
    let find = |name: &str| *values.iter().find(|&&it| program.value_name(it) == name).unwrap();
    assert_eq!(spaces.of_result(0, find("%0")), Space::Host);
    assert_eq!(spaces.of_result(1, find("%a")), Space::Device);
    assert_eq!(spaces.of_argument(find("%a")), Space::Host);
}

#[test]
fn branches_return_what_is_on_the_host() {
    let host = format!("{T} {{mhlo.memory_kind = \"pinned_host\"}}");
    let body = format!(
        "%0 = \"stablehlo.if\"(%p) ({{
           stablehlo.return %a : {T}
         }}, {{
           stablehlo.return %a : {T}
         }}) : (tensor<i1>) -> {T}
         return %0 : {T}"
    );
    let program = program(&format!("%a: {host}, %p: tensor<i1>"), &host, &body);
    let spaces = Spaces::new(&program);
    assert!(spaces.moves.is_empty());
    assert_eq!(names(&program, &spaces, Space::Host), ["%a", "%0"]);
}
