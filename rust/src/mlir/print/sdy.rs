//! Prints Shardy's ops from their fields.

use super::fields::spaced;
use super::printer::{Label, Printer, Task};
use crate::attribute;
use crate::index::{OpId, ValueId};
use crate::ir::{Attr, Direction, OpKind, Payload};
use crate::sharding::ReductionOp;
use std::fmt::Write as _;

impl Printer<'_> {
    /// Prints an op of `sdy` after its results; false if passes do not make such ops.
    pub(super) fn print_sdy(&mut self, op: OpId) -> bool {
        let program = self.program;
        match (program.kind(op), program.payload(op)) {
            (OpKind::Mesh, Some(Payload::Mesh(id))) => {
                let row = &program.meshes()[*id];
                let mut text = "sdy.mesh ".to_owned();
                attribute::write_symbol(&mut text, row.symbol.map_or("", |id| program.str(id)));
                text.push_str(" = ");
                attribute::write_mesh(&mut text, &row.mesh);
                text.push_str(&spaced(self.dict(program.op_attrs(op), &[])));
                text.push_str(&self.loc_suffix(op));
                self.write(&text);
            }
            (
                OpKind::ManualComputation | OpKind::NamedComputation | OpKind::Fragment,
                Some(payload),
            ) => self.print_computation(op, payload),
            (OpKind::SdyConstant, _) => return false,
            _ => match self.tensor_op(op) {
                Some(text) => self.write(&text),
                None => return false,
            },
        }
        true
    }
    /// An op of one tensor.
    fn tensor_op(&self, op: OpId) -> Option<String> {
        let program = self.program;
        let kind = program.kind(op);
        let name = program.op_name(op);
        let operand = self.operand_list(op);
        let result = program.op_results(op).next();
        let sharding = result.map_or(String::new(), |v| self.sharding_text(program.sharding(v)));
        let out_sharding = format!("out_sharding={sharding}");
        let middle = match (kind, program.payload(op)) {
            (OpKind::ShardingConstraint | OpKind::Reshard, _) => format!("{operand} {sharding}"),
            (OpKind::DataFlowEdge, _) if sharding.is_empty() => operand,
            (OpKind::DataFlowEdge, _) => format!("{operand} sharding={sharding}"),
            (OpKind::FuncDataFlowEdge, _) => operand,
            (OpKind::ShardingGroup, Some(Payload::ShardingGroup(id))) => {
                format!("{operand} group_id={id}")
            }
            (OpKind::PropagationBarrier, Some(Payload::PropagationBarrier(direction))) => {
                format!("{operand} allowed_direction={}", direction_text(*direction))
            }
            (OpKind::CollectivePermute, _) => format!("{operand} {out_sharding}"),
            (_, Some(payload)) => {
                let axes = self.axes_text(op, payload)?;
                let reduction = match payload.reduction_op() {
                    ReductionOp::Sum => String::new(),
                    other => format!("{} ", other.keyword()),
                };
                format!("{reduction}{axes} {operand} {out_sharding}")
            }
            _ => return None,
        };
        let mut more = self.sharding_attrs(op);
        let is_in_dict = matches!(
            kind,
            OpKind::FuncDataFlowEdge | OpKind::PropagationBarrier | OpKind::ShardingGroup
        );
        more.retain(|(name, _)| *name != "sdy.sharding" || is_in_dict);
        let dict = spaced(self.dict(program.op_attrs(op), &more));
        let ty = match result {
            Some(value) => program.type_of(value),
            None => program.type_of(program.operand(op, 0)),
        };
        Some(format!("{name} {middle}{dict} : {}{}", self.type_text(ty), self.loc_suffix(op)))
    }
    fn axes_text(&self, op: OpId, payload: &Payload) -> Option<String> {
        let program = self.program;
        let sharding = program.op_results(op).next().map(|value| program.sharding(value))?;
        let mesh = program.mesh(program.mesh_of(sharding).get()?);
        let mut out = String::new();
        match payload {
            Payload::AxesPerDim(lists, _) => attribute::write_axes_per_dim(&mut out, lists, mesh),
            Payload::Axes(axes, _) => attribute::write_axis_list(&mut out, axes, mesh),
            Payload::AllToAll(params) => attribute::write_all_to_all(&mut out, params, mesh),
            _ => return None,
        }
        Some(out)
    }
    fn print_computation(&mut self, op: OpId, payload: &Payload) {
        let program = self.program;
        // The dictionary of a fragment is before its region.
        let is_fragment = matches!(payload, Payload::Fragment { .. });
        let region = program.op_regions(op).next();
        let body = region.and_then(|region| program.region_entry(region).get());
        let args: Vec<ValueId> = body.map_or(Vec::new(), |b| program.block_args(b).collect());
        let results: Vec<ValueId> = program.op_results(op).collect();
        let list = |values: &[ValueId]| {
            let ids: Vec<_> = values.iter().map(|&value| program.sharding(value)).collect();
            self.sharding_list(&ids, values)
        };
        let mut text = program.op_name(op).to_owned();
        let operands = self.operand_list(op);
        match payload {
            Payload::NamedComputation { name, has_in_shardings, has_out_shardings } => {
                let _ = write!(text, "<\"{}\">({operands})", program.str(*name));
                for (side, values, is_written) in
                    [("in", &args, *has_in_shardings), ("out", &results, *has_out_shardings)]
                {
                    if is_written || values.iter().any(|&v| program.sharding(v).is_some()) {
                        let _ = write!(text, " {side}_shardings={}", list(values));
                    }
                }
            }
            Payload::Fragment { header, has_in_shardings, has_out_shardings, .. } => {
                let _ = write!(text, "<{}", program.str(*header));
                for (side, values, is_written) in
                    [("in", &args, *has_in_shardings), ("out", &results, *has_out_shardings)]
                {
                    if is_written || values.iter().any(|&v| program.sharding(v).is_some()) {
                        let _ = write!(text, ", {side}_shardings={}", list(values));
                    }
                }
                let _ = write!(text, "> ({operands})");
            }
            Payload::ManualComputation(names) => {
                let _ = write!(text, "({operands}) in_shardings={}", list(&args));
                let _ = write!(text, " out_shardings={} manual_axes=", list(&results));
                let names = names.iter().map(|&name| program.str(name));
                attribute::write_manual_axes(&mut text, names);
            }
            _ => {}
        }
        let mut more = self.sharding_attrs(op);
        more.retain(|(name, _)| *name != "sdy.sharding");
        // In generic form, the fields of the header are attributes.
        let in_header = |attr: &&Attr| {
            is_fragment && matches!(program.str(attr.name), "mesh_name" | "origin" | "stage_id")
        };
        let attrs = program.op_attrs(op).iter().filter(|attr| !in_header(attr));
        let dict = spaced(self.dict(&attrs.copied().collect::<Vec<_>>(), &more));
        let (before, after) = if is_fragment { (&*dict, "") } else { ("", &*dict) };
        let _ = write!(text, "{before} ({}) ", self.typed_args(&args));
        let tail = format!("{after} : {}{}", self.function_type(op), self.loc_suffix(op));
        self.write(&text);
        self.tasks.push(Task::Text(tail));
        if let Some(region) = region {
            self.tasks.push(Task::Region(region, Label::Hidden));
        }
    }
}

const fn direction_text(direction: Direction) -> &'static str {
    match direction {
        Direction::None => "NONE",
        Direction::Forward => "FORWARD",
        Direction::Backward => "BACKWARD",
        Direction::Both => "BOTH",
    }
}
