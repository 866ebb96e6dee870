//! What a program says of memories: kinds of arguments and results, placements, and what the host is to compute.

use super::Space;
use crate::bitset::BitSet;
use crate::index::{FuncId, OpId, ValueId};
use crate::inlining::call_graph::Calls;
use crate::ir::{OpKind, OpTraits, Port, Program};
use crate::mlir::{op_attribute, AttrValue};
use rustc_hash::FxHashMap;

/// The attribute of the memory of an argument or a result.
const MEMORY_KIND: &str = "mhlo.memory_kind";
/// The attribute that has those of XLA.
const FRONTEND_ATTRIBUTES: &str = "mhlo.frontend_attributes";

/// What a program says of memories.
pub(super) struct Marks {
    /// The entry function.
    pub entry: FuncId,
    /// Its arguments that are on the host.
    pub arguments: Vec<ValueId>,
    /// Which of its results are.
    pub results: Vec<bool>,
    /// The ops that place their operand, and where.
    pub placements: FxHashMap<OpId, Space>,
    /// The ops that the host is to compute.
    pub computed: BitSet<OpId>,
}

impl Marks {
    /// What `program` says; `None` if it says nothing.
    pub fn of(program: &Program) -> Option<Self> {
        let entry = program.entry_function()?;
        let body = program.func_body(entry).get()?;
        let is_host = |port: &Port| kind_of(program, port) == Some(Space::Host);
        let arguments = program.block_args(body).zip(program.func_args(entry));
        let arguments: Vec<ValueId> =
            arguments.filter(|(_, port)| is_host(port)).map(|(value, _)| value).collect();
        let results: Vec<bool> = program.func_results(entry).iter().map(is_host).collect();
        let calls = program.repeated_ops_of(OpKind::CustomCall);
        let placements: FxHashMap<OpId, Space> =
            calls.filter_map(|op| Some((op, placement(program, op)?))).collect();
        let mut computed = BitSet::new(program.num_op_ids());
        if program.find_name(FRONTEND_ATTRIBUTES).is_some() {
            for op in program.op_ids().filter(|&op| is_for_host(program, op)) {
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

/// The memory of this name; `None` if it is another one, or none. XLA does not tell pinned from unpinned memory of hosts.
fn space_of(name: &str) -> Option<Space> {
    match name {
        "pinned_host" | "unpinned_host" => Some(Space::Host),
        "device" | "device_sram" | "pinned_device" => Some(Space::Device),
        _ => None,
    }
}

/// The memory that `port` is said to be in.
fn kind_of(program: &Program, port: &Port) -> Option<Space> {
    let attrs = program.attr_list(port.attrs).iter();
    let kind = attrs.copied().find(|attr| program.str(attr.name) == MEMORY_KIND)?;
    space_of(AttrValue::parse(program.text().get(kind.value)).as_str()?)
}

/// Where `op`, a custom call, places its operand, if it does only that.
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

/// Whether the host is to compute `op`.
fn is_for_host(program: &Program, op: OpId) -> bool {
    !program.is_erased(op)
        && program.parent_block(op).is_some()
        && !matches!(program.kind(op), OpKind::Func | OpKind::Call)
        && frontend(program, op, "_xla_compute_type").as_deref() == Some("host")
}

/// The text of attribute `name` among XLA's attributes of `op`.
fn frontend(program: &Program, op: OpId, name: &str) -> Option<String> {
    program.attr(op, FRONTEND_ATTRIBUTES)?;
    let found = op_attribute(program, op, FRONTEND_ATTRIBUTES)?;
    Some(found.field(name)?.as_str()?.to_owned())
}

/// `program` where all that functions do which only the host calls says that the host computes it; `None` if there are none. JAX says it of
/// calls, and of most ops in what they call.
pub(super) fn within_calls(program: &Program) -> Option<Program> {
    program.find_name(FRONTEND_ATTRIBUTES)?;
    let calls = Calls::new(program);
    let callee = |call: OpId| Some((call, calls.callee(program, call)?));
    let all = program.repeated_ops_of(OpKind::Call);
    let mut all: Vec<(OpId, FuncId)> = all.filter_map(callee).collect();
    all.sort_unstable();
    all.dedup();
    let is_asked =
        |call: OpId| frontend(program, call, "_xla_compute_type").as_deref() == Some("host");
    let asked: Vec<bool> = all.iter().map(|&(call, _)| is_asked(call)).collect();
    if !asked.contains(&true) {
        return None;
    }
    let mut found: BitSet<FuncId> = BitSet::new(program.num_func_ids());
    loop {
        let by_host = |&(&(call, _), &is_asked): &(&(OpId, FuncId), &bool)| {
            is_asked || found.contains(program.function_of(program.top_level_op(call)))
        };
        let (mut called, mut otherwise) = (found.clone(), BitSet::new(program.num_func_ids()));
        for (row, is_asked) in all.iter().zip(&asked) {
            if by_host(&(row, is_asked)) {
                called.insert(row.1);
            } else {
                otherwise.insert(row.1);
            }
        }
        let more: Vec<FuncId> = called.iter().filter(|&func| !otherwise.contains(func)).collect();
        if more.into_iter().fold(false, |is_new, func| found.insert(func) || is_new) {
            continue;
        }
        break;
    }
    let mut marked = program.clone();
    for func in found.iter() {
        let func = program.func_op(func);
        for op in program.pre_order(func).filter(|&op| op != func) {
            let is_plain = program.attr(op, FRONTEND_ATTRIBUTES).is_none()
                && !program.has_traits(op, OpTraits::TERMINATOR)
                && program.kind(op) != OpKind::Call;
            if is_plain {
                marked.set_attr(op, FRONTEND_ATTRIBUTES, "{_xla_compute_type = \"host\"}");
            }
        }
    }
    Some(marked)
}
