//! The memory spaces that a program states: kinds of arguments and results, placements, and ops for the host.

use super::Space;
use crate::bitset::BitSet;
use crate::index::{FuncId, OpId, ValueId};
use crate::inlining::host_calls::{is_for_host, FRONTEND_ATTRIBUTES};
use crate::ir::{OpKind, Port, Program};
use crate::mlir::{op_attribute, AttrValue};
use std::collections::BTreeMap;

/// The attribute of the memory of an argument or a result.
const MEMORY_KIND: &str = "mhlo.memory_kind";

/// The memory spaces that a program states.
pub(super) struct Marks {
    /// The entry function.
    pub entry: FuncId,
    /// Its arguments that are on the host.
    pub arguments: Vec<ValueId>,
    /// Which of its results are.
    pub results: Vec<bool>,
    /// The ops that place their operand, and where.
    pub placements: BTreeMap<OpId, Space>,
    /// The ops that are marked for the host.
    pub computed: BitSet<OpId>,
}

impl Marks {
    /// The statements of `program`; `None` if there are none.
    pub fn of(program: &Program) -> Option<Self> {
        let entry = program.entry_function()?;
        let body = program.func_body(entry).get()?;
        let is_host = |port: &Port| kind_of(program, port) == Some(Space::Host);
        let arguments = program.block_args(body).zip(program.func_args(entry));
        let arguments: Vec<ValueId> =
            arguments.filter(|(_, port)| is_host(port)).map(|(value, _)| value).collect();
        let results: Vec<bool> = program.func_results(entry).iter().map(is_host).collect();
        let calls = program.repeated_ops_of(OpKind::CustomCall);
        let placements: BTreeMap<OpId, Space> =
            calls.filter_map(|op| Some((op, placement(program, op)?))).collect();
        let mut computed = BitSet::new(program.num_op_ids());
        if program.find_name(FRONTEND_ATTRIBUTES).is_some() {
            let is_there = |op: OpId| {
                !program.is_erased(op)
                    && program.parent_block(op).is_some()
                    && !matches!(program.kind(op), OpKind::Func | OpKind::Call)
            };
            for op in program.op_ids().filter(|&op| is_there(op) && is_for_host(program, op)) {
                computed.insert(op);
            }
        }
        let is_silent = arguments.is_empty()
            && !results.contains(&true)
            && placements.is_empty()
            && computed.is_empty();
        (!is_silent).then_some(Self { entry, arguments, results, placements, computed })
    }
}

/// The memory space of this name; `None` if it is another one, or empty. XLA does not distinguish pinned from unpinned host memory.
fn space_of(name: &str) -> Option<Space> {
    match name {
        "pinned_host" | "unpinned_host" => Some(Space::Host),
        "device" | "device_sram" | "pinned_device" => Some(Space::Device),
        _ => None,
    }
}

/// The stated memory space of `port`.
fn kind_of(program: &Program, port: &Port) -> Option<Space> {
    let attrs = program.attr_list(port.attrs).iter();
    let kind = attrs.copied().find(|attr| program.str(attr.name) == MEMORY_KIND)?;
    space_of(AttrValue::parse(program.text().get(kind.value)).as_str()?)
}

/// The memory space in which `op`, a custom call, places its operand, if that is all it does.
fn placement(program: &Program, op: OpId) -> Option<Space> {
    if program.num_operands(op) != 1 || program.num_results(op) != 1 {
        return None;
    }
    let target = op_attribute(program, op, "call_target_name")?;
    match target.as_str()? {
        "annotate_device_placement" => space_of(&frontend(program, op, "_xla_buffer_placement")?),
        "MoveToHost" => Some(Space::Host),
        "MoveToDevice" => Some(Space::Device),
        _ => None,
    }
}

/// The text of attribute `name` among XLA's attributes of `op`.
fn frontend(program: &Program, op: OpId, name: &str) -> Option<String> {
    program.attr(op, FRONTEND_ATTRIBUTES)?;
    let found = op_attribute(program, op, FRONTEND_ATTRIBUTES)?;
    Some(found.field(name)?.as_str()?.to_owned())
}
