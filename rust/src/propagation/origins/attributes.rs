//! The record of origins as attributes of the program: `sdy.sharding_origins` and
//! `sdy.propagation_edges`.

use super::initial::body_args;
use super::origin::{Flow, NamedAxis, Origin, Origins};
use super::record::Recorder;
use crate::attribute::{
    split_array, write_free_axis, write_key, write_propagation_edges, write_string,
    AxisPropagation, EdgeValueRef, PropagationStep,
};
use crate::index::{FuncId, Id, OpId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

const ORIGINS: &str = "sdy.sharding_origins";
const EDGES: &str = "sdy.propagation_edges";

impl Recorder {
    /// Ends the record and writes it to `program`.
    pub fn finish(self, program: &mut Program) -> Origins {
        if self.settings.sharding_origins {
            self.save_origins(program);
        }
        if self.settings.propagation_edges {
            self.save_flows(program);
        }
        self.origins
    }

    fn save_origins(&self, program: &mut Program) {
        let edges = self.manual_edges(program);
        let mut values: Vec<ValueId> = self.origins.values.keys().copied().collect();
        values.sort_unstable_by_key(|value| value.index());
        let mut results = ResultDicts::default();
        for value in values {
            let owner = match program.def(value) {
                ValueDef::Result(op) => op,
                ValueDef::Arg(block) => program.block_parent_op(block),
            };
            let known = self.origins.of_value(value);
            if known.is_empty() || program.is_erased(owner) {
                continue;
            }
            if let Some((func, index)) = returned_as(program, value, owner) {
                let text = origins_dict(program, known, Some(Origin::Output(index as u32)));
                program.set_result_attr(func, index, ORIGINS, &text);
            }
            let index = program.value_index(value);
            match (program.kind(owner), program.def(value)) {
                (OpKind::Func, ValueDef::Arg(_)) => {
                    let text = origins_dict(program, known, Some(Origin::Input(index as u32)));
                    let func = program.function_of(owner);
                    program.set_arg_attr(func, index, ORIGINS, &text);
                }
                (OpKind::ShardingConstraint, _) => {
                    let own = self.constraints.get(&owner).map(|&id| Origin::Constraint(id));
                    let text = origins_dict(program, known, own);
                    program.set_attr(owner, ORIGINS, &text);
                }
                (OpKind::DataFlowEdge, _) => {
                    let text = origins_dict(program, known, edges.get(&owner).copied());
                    program.set_attr(owner, ORIGINS, &text);
                }
                (_, ValueDef::Result(_)) => {
                    let text = origins_dict(program, known, None);
                    results.set(program, owner, index, text);
                }
                // The reference writes nothing for arguments of other regions.
                (_, ValueDef::Arg(_)) => {}
            }
        }
        results.save(program);
    }

    /// The data-flow edges into and out of manual computations, each with its origin.
    fn manual_edges(&self, program: &Program) -> FxHashMap<OpId, Origin> {
        let mut edges = FxHashMap::default();
        for (&op, id) in self.manual_computations.iter().zip(0..) {
            for (index, arg) in body_args(program, op).into_iter().enumerate() {
                if let Some(edge) = program.data_flow_edge(arg) {
                    edges.insert(edge, Origin::ManualInput { id, index: index as u32 });
                }
            }
            for (index, result) in program.op_results(op).enumerate() {
                if let Some(edge) = program.data_flow_edge(result) {
                    edges.insert(edge, Origin::ManualOutput { id, index: index as u32 });
                }
            }
        }
        edges
    }

    fn save_flows(&self, program: &mut Program) {
        let mut ops: Vec<OpId> = self.origins.ops.keys().copied().collect();
        ops.sort_unstable_by_key(|op| op.index());
        for op in ops {
            if program.is_erased(op) {
                continue;
            }
            if let Some(text) = edges_text(program, self.origins.flows(op)) {
                program.set_attr(op, EDGES, &text);
            }
        }
        for func in program.functions_in_order() {
            // As the reference, write the flows of all results to the first one.
            if program.func_results(func).is_empty() {
                continue;
            }
            if let Some(text) = edges_text(program, self.origins.func_result_flows(func)) {
                program.set_result_attr(func, 0, EDGES, &text);
            }
        }
    }
}

/// The function that returns `value`, defined by `owner`, and the index of the result. Of several
/// returns the most recently added use counts.
fn returned_as(program: &Program, value: ValueId, owner: OpId) -> Option<(FuncId, usize)> {
    let op = if program.kind(owner) == OpKind::Func { owner } else { program.parent_op(owner)? };
    if program.kind(op) != OpKind::Func {
        return None;
    }
    let func = program.function_of(op);
    let body = program.func_body(func.get()?).get()?;
    let last = program.last_op(body).get()?;
    let slot = program.uses(value).find(|&slot| program.user(slot) == last)?;
    let index = program.operand_index(slot);
    (index < program.func_results(func).len()).then_some((func, index))
}

/// `{a = "input: 0", "b:(1)2" = "self"}`, sorted by name; the origin `own` is written `self`.
fn origins_dict(program: &Program, known: &[(NamedAxis, Origin)], own: Option<Origin>) -> String {
    let mut entries: BTreeMap<String, Origin> = BTreeMap::new();
    for &(axis, origin) in known {
        let mut name = String::new();
        write_free_axis(&mut name, program.str(axis.name), axis.sub);
        name.retain(|c| c != '"');
        entries.entry(name).or_insert(origin);
    }
    let mut out = String::from("{");
    for (index, (name, origin)) in entries.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_key(&mut out, name);
        let is_own = own == Some(*origin);
        let origin = if is_own { "self".to_owned() } else { origin.to_string() };
        out.push_str(" = ");
        write_string(&mut out, &origin);
    }
    out.push('}');
    out
}

/// The origins of the results of one op: a list with a dictionary for each result.
#[derive(Default)]
struct ResultDicts {
    op: Option<OpId>,
    dicts: Vec<String>,
}

impl ResultDicts {
    /// Sets the dictionary of one result of `op`. All results of an op are set before those of
    /// another.
    fn set(&mut self, program: &mut Program, op: OpId, index: usize, text: String) {
        if self.op != Some(op) {
            self.save(program);
            let num_results = program.num_results(op);
            let old = program.attr(op, ORIGINS).and_then(split_array).unwrap_or_default();
            self.dicts = old.into_iter().map(str::to_owned).collect();
            self.dicts.resize(num_results.max(self.dicts.len()), "{}".to_owned());
            self.op = Some(op);
        }
        self.dicts[index] = text;
    }
    /// Writes the list to the op.
    fn save(&mut self, program: &mut Program) {
        if let Some(op) = self.op.take() {
            program.set_attr(op, ORIGINS, &format!("[{}]", self.dicts.join(", ")));
        }
    }
}

/// `#sdy.propagation_edges<...>` of `flows`; `None` if there are none.
///
/// Of repeated flows the first one counts.
fn edges_text(program: &Program, flows: &[Flow]) -> Option<String> {
    let mut seen = FxHashSet::default();
    let mut steps: BTreeMap<i64, Vec<AxisPropagation>> = BTreeMap::new();
    let mut places: FxHashMap<(i64, NamedAxis, EdgeValueRef), usize> = FxHashMap::default();
    for &Flow { step, axis, source, target } in flows {
        if !seen.insert((axis, source, target)) {
            continue;
        }
        let entries = steps.entry(step).or_default();
        let place = *places.entry((step, axis, source)).or_insert(entries.len());
        if place == entries.len() {
            let axis = (program.str(axis.name).to_owned(), axis.sub);
            entries.push(AxisPropagation { axis, source, targets: Vec::new() });
        }
        entries[place].targets.push(target);
    }
    let steps: Vec<PropagationStep> = steps
        .into_iter()
        .map(|(index, mut axes)| {
            for entry in &mut axes {
                entry.targets.sort_unstable();
            }
            axes.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
            PropagationStep { index, axes }
        })
        .collect();
    if steps.is_empty() {
        return None;
    }
    let mut text = String::new();
    write_propagation_edges(&mut text, &steps);
    Some(text)
}

/// The order by name, then by pre-size; a full axis comes after its sub-axes.
fn sort_key(entry: &AxisPropagation) -> (&str, i64, i64, EdgeValueRef) {
    let (name, sub) = &entry.axis;
    let (pre_size, size) = sub.map_or((1, i64::MAX), |sub| (sub.pre_size, sub.size));
    (name, pre_size, size, entry.source)
}
