//! What ops mean beyond their form, noted while they are read: symbols, meshes, shardings, calls.
//! `meaning.rs` reads what was noted.

use crate::attribute;
use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::{OpId, StrId};
use crate::ir::{Direction, OpKind, Payload};
use crate::mlir::meaning::resolve::in_own_syntax;
use crate::mlir::meaning::target::Target;
use crate::mlir::reader::generic::axes_attr;
use crate::mlir::reader::parser::{Building, Parser};

/// A call to check.
pub(in crate::mlir) struct Call {
    pub op: OpId,
    pub module: OpId,
    pub callee: StrId,
    pub span: Span,
}

impl Parser<'_> {
    /// Notes that `op` defines the symbol at `span`.
    pub(in crate::mlir) fn define_symbol(&mut self, op: OpId, span: Span) -> Result<()> {
        let text = self.attr_name(span);
        let name = self.program.strings.intern(text);
        let module = self.enclosing_module(op);
        let Some((_, first)) = self.symbols.insert((module, name), (op, span)) else {
            return Ok(());
        };
        let message = format!("redefinition of symbol named '{text}'");
        Err(Diagnostic::new(Code::RedefinedSymbol, message)
            .at(span)
            .with_related(first, "first defined here")
            .into())
    }
    /// The innermost module around `op`, which is not complete.
    fn enclosing_module(&self, op: OpId) -> OpId {
        self.modules.iter().rev().copied().find(|&module| module != op).unwrap_or(OpId::NONE)
    }
    /// Notes a call of the symbol at `span`.
    pub(in crate::mlir) fn note_call(&mut self, op: OpId, span: Span) {
        let callee = self.program.strings.intern(self.attr_name(span));
        self.program.ops[op].payload = self.program.payloads.push(Payload::Call(callee));
        let module = self.enclosing_module(op);
        self.calls.push(Call { op, module, callee, span });
    }
    /// Notes a mesh: its name and its attribute.
    pub(in crate::mlir) fn note_mesh(&mut self, op: OpId, name: Span, mesh: Span) -> Result<()> {
        self.define_symbol(op, name)?;
        let symbol = self.program.strings.intern(self.attr_name(name));
        let id = self.program.meshes.add(symbol, crate::Mesh::default());
        self.program.ops[op].payload = self.program.payloads.push(Payload::Mesh(id));
        self.meshes.push((op, mesh));
        Ok(())
    }
    /// Notes what a named computation has.
    pub(in crate::mlir) fn note_named_computation(
        &mut self,
        building: &Building,
        name: Span,
        inputs: Option<Span>,
    ) {
        let name = self.program.strings.intern(self.attr_name(name));
        let payload = Payload::NamedComputation {
            name,
            has_in_shardings: inputs.is_some(),
            has_out_shardings: building.sharding.is_some(),
        };
        self.program.ops[building.op].payload = self.program.payloads.push(payload);
        if let Some(inputs) = inputs {
            self.targets.push((Target::RegionArgs(building.op), inputs));
        }
    }
    /// Notes what an op that has all its parts says about shardings.
    pub(in crate::mlir) fn note_meaning(&mut self, building: &Building) -> Result<()> {
        let (op, kind) = (building.op, building.name.kind);
        if kind == OpKind::Func {
            let payload = Payload::Function(building.function);
            self.program.ops[op].payload = self.program.payloads.push(payload);
            self.finish_function(building)?;
        }
        if let Some(rule) = building.rule {
            self.targets.push((Target::Rule(op), rule));
        }
        let Some(sharding) = building.sharding else { return self.note_payload(building) };
        let is_single = axes_attr(kind).is_some()
            || matches!(kind, OpKind::ShardingConstraint | OpKind::Reshard | OpKind::DataFlowEdge);
        let target = if is_single { Target::Result(op) } else { Target::Results(op) };
        self.targets.push((target, sharding));
        self.note_payload(building)
    }
    fn note_payload(&mut self, building: &Building) -> Result<()> {
        let (op, span) = (building.op, building.payload);
        let text = self.text_at(span);
        let payload = match building.name.kind {
            OpKind::ManualComputation => {
                let names = attribute::parse_manual_axes(text, span.start);
                let names = names.map_err(|error| {
                    let name = self.program.strings.get(building.name.id);
                    if building.is_generic {
                        error
                    } else {
                        in_own_syntax(name, error)
                    }
                })?;
                let names = names.iter().map(|name| self.program.strings.intern(name)).collect();
                Payload::ManualComputation(names)
            }
            OpKind::ShardingGroup => {
                let digits = text.split(':').next().unwrap_or("").trim();
                let Ok(id) = digits.parse() else {
                    let message = "a sharding group's id is an integer of 64 bits";
                    return Err(Diagnostic::new(Code::InvalidOp, message).at(span).into());
                };
                Payload::ShardingGroup(id)
            }
            OpKind::PropagationBarrier => Payload::PropagationBarrier(direction(text, span)?),
            kind if axes_attr(kind).is_some_and(|name| !name.is_empty()) => {
                self.targets.push((Target::Axes(op), span));
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.program.ops[op].payload = self.program.payloads.push(payload);
        Ok(())
    }
}

/// The direction that `text` names: a word, or the number of it in generic form.
fn direction(text: &str, span: Span) -> Result<Direction> {
    let word = text.split(':').next().unwrap_or("").trim();
    Ok(match word {
        "NONE" | "0" => Direction::None,
        "FORWARD" | "1" => Direction::Forward,
        "BACKWARD" | "2" => Direction::Backward,
        "BOTH" | "3" => Direction::Both,
        _ => {
            let message = "expected a direction: NONE, FORWARD or BACKWARD";
            return Err(Diagnostic::new(Code::InvalidOp, message).at(span).into());
        }
    })
}
