//! Records the symbols, meshes, shardings, rules and calls that are found while ops are parsed.
//!
//! A mesh may be defined after shardings that name it, so most records are only spans;
//! [`Notes::resolve`](super::resolve) parses them once the whole program has been parsed.

use super::calls::Call;
use super::symbols::{symbol_name, Symbols};
use super::target::Target;
use super::wording::in_own_syntax;
use crate::attribute;
use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::{OpId, StrId};
use crate::ir::{Direction, OpKind, Payload, Program};
use crate::mlir::escapes::unescaped;
use crate::sharding::ReductionOp;
use std::ops::Range;

/// The spans of the sharding annotations of one op, in generic or custom syntax.
#[derive(Clone, Copy)]
pub(in crate::mlir) struct Annotations {
    /// Its sharding or shardings.
    pub sharding: Option<Span>,
    /// Its rule, `sdy.sharding_rule`.
    pub rule: Option<Span>,
    /// The axes, group or direction of an op of Shardy.
    pub payload: Span,
    /// The reduction of a collective of Shardy.
    pub reduction_op: ReductionOp,
}

impl Annotations {
    /// No annotations.
    pub const NONE: Self =
        Self { sharding: None, rule: None, payload: Span::EMPTY, reduction_op: ReductionOp::Sum };
}

/// The records of a program.
pub(in crate::mlir) struct Notes<'a> {
    pub(super) text: &'a str,
    pub(super) symbols: Symbols,
    pub(super) meshes: Vec<(OpId, Span)>,
    pub(super) targets: Vec<(Target, Span)>,
    pub(super) calls: Vec<Call>,
    /// Ops with regions to check, with the spans of their names.
    pub(super) region_ops: Vec<(OpId, Span)>,
    /// Known ops with `properties` that are not a dictionary or that they do not have.
    pub(super) properties: Vec<(OpId, Span)>,
}

/// The number of records at some point of the text.
#[derive(Clone, Copy)]
pub(in crate::mlir) struct NotesMark {
    targets: usize,
    calls: usize,
}

impl<'a> Notes<'a> {
    /// No records, for a program with this text.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            symbols: Symbols::default(),
            meshes: Vec::new(),
            targets: Vec::new(),
            calls: Vec::new(),
            region_ops: Vec::new(),
            properties: Vec::new(),
        }
    }
    /// The text at `span`.
    pub(super) fn text_at(&self, span: Span) -> &'a str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
    /// Records that the region of module `op` starts.
    pub fn enter_module(&mut self, op: OpId) {
        self.symbols.enter(op);
    }
    /// Records that the region of the innermost module ends.
    pub fn leave_module(&mut self) {
        self.symbols.leave();
    }
    /// Records that `op` defines the symbol at `span`; fails if its module has it already.
    pub fn define_symbol(&mut self, program: &mut Program, op: OpId, span: Span) -> Result<StrId> {
        let text = symbol_name(self.text_at(span));
        let name = program.intern(text);
        self.symbols.define(op, name, text, span)?;
        Ok(name)
    }
    /// Records that `op`, a known op, has the properties at `span`, none of which it may have.
    pub fn note_properties(&mut self, op: OpId, span: Span) {
        self.properties.push((op, span));
    }
    /// Records that `op` calls the symbol at `span`.
    pub fn note_call(&mut self, program: &mut Program, op: OpId, span: Span) {
        let callee = program.intern(symbol_name(self.text_at(span)));
        program.attach_payload(op, Payload::Call(callee));
        let module = self.symbols.module_around(op);
        self.calls.push(Call { op, module, callee, span });
    }
    /// Records a mesh: its name and its attribute.
    pub fn note_mesh(
        &mut self,
        program: &mut Program,
        op: OpId,
        name: Span,
        mesh: Span,
    ) -> Result<()> {
        // Shardings refer to a mesh by its name with escapes resolved.
        let text = unescaped(symbol_name(self.text_at(name)));
        let symbol = program.intern(&text);
        self.symbols.define(op, symbol, &text, name)?;
        let id = program.add_mesh(symbol, crate::Mesh::default());
        program.attach_payload(op, Payload::Mesh(id));
        self.meshes.push((op, mesh));
        Ok(())
    }
    /// Records the name of a named computation, the shardings of its inputs, and whether it has shardings
    /// of its outputs.
    pub fn note_named_computation(
        &mut self,
        program: &mut Program,
        op: OpId,
        name: Span,
        inputs: Option<Span>,
        has_out_shardings: bool,
    ) {
        let name = program.intern(symbol_name(self.text_at(name)));
        let has_in_shardings = inputs.is_some();
        let payload = Payload::NamedComputation { name, has_in_shardings, has_out_shardings };
        program.attach_payload(op, payload);
        if let Some(inputs) = inputs {
            self.note_sharding(Target::RegionArgs(op), inputs);
        }
    }
    /// Records the sharding or shardings at `span`.
    pub fn note_sharding(&mut self, target: Target, span: Span) {
        self.targets.push((target, span));
    }
    /// Records that `op`, whose name is at `span`, has regions to check.
    pub fn note_regions(&mut self, op: OpId, span: Span) {
        self.region_ops.push((op, span));
    }
    /// Records the sharding annotations of `op`, which is complete.
    pub fn note_annotations(
        &mut self,
        program: &mut Program,
        op: OpId,
        annotations: &Annotations,
        is_generic: bool,
    ) -> Result<()> {
        let kind = program.kind(op);
        if let Some(rule) = annotations.rule {
            self.targets.push((Target::Rule(op), rule));
        }
        if let Some(sharding) = annotations.sharding {
            let is_single = axes_attribute(kind).is_some()
                || matches!(
                    kind,
                    OpKind::ShardingConstraint | OpKind::Reshard | OpKind::DataFlowEdge
                );
            let target = if is_single { Target::Result(op) } else { Target::Results(op) };
            self.targets.push((target, sharding));
        }
        let span = annotations.payload;
        let payload = match kind {
            OpKind::ManualComputation => self.manual_axes(program, op, span, is_generic)?,
            OpKind::ShardingGroup => sharding_group(self.text_at(span), span)?,
            OpKind::PropagationBarrier => {
                Payload::PropagationBarrier(direction(self.text_at(span), span)?)
            }
            kind if axes_attribute(kind).is_some_and(|name| !name.is_empty()) => {
                self.targets.push((Target::Axes(op, annotations.reduction_op), span));
                return Ok(());
            }
            _ => return Ok(()),
        };
        program.attach_payload(op, payload);
        Ok(())
    }
    fn manual_axes(
        &self,
        program: &mut Program,
        op: OpId,
        span: Span,
        is_generic: bool,
    ) -> Result<Payload> {
        let names = attribute::parse_manual_axes(self.text_at(span), span.start);
        let names = names.map_err(|error| {
            if is_generic {
                error
            } else {
                in_own_syntax(program.op_name(op), error)
            }
        })?;
        let names = names.iter().map(|name| program.intern(name)).collect();
        Ok(Payload::ManualComputation(names))
    }

    /// The number of records so far.
    pub fn mark(&self) -> NotesMark {
        NotesMark { targets: self.targets.len(), calls: self.calls.len() }
    }
    /// The range, in the list of targets, of the records since `mark`; `None` if there are other
    /// records than shardings and the rule of one op's results.
    pub fn annotations_since(&self, mark: NotesMark) -> Option<Range<usize>> {
        let is_plain = |target: &(Target, Span)| {
            matches!(target.0, Target::Results(_) | Target::Result(_) | Target::Rule(_))
        };
        let has_calls = self.calls.len() > mark.calls;
        let targets = mark.targets..self.targets.len();
        (!has_calls && self.targets[targets.clone()].iter().all(is_plain)).then_some(targets)
    }
    /// Records for `op` the annotations at `places` in the list of targets, [`annotations_since`] some mark;
    /// `span_of` maps spans there to spans in the text of `op`.
    ///
    /// [`annotations_since`]: Self::annotations_since
    pub fn repeat_annotations(
        &mut self,
        places: Range<usize>,
        op: OpId,
        span_of: impl Fn(Span) -> Span,
    ) {
        for place in places {
            let (target, span) = self.targets[place];
            let target = match target {
                Target::Results(_) => Target::Results(op),
                Target::Rule(_) => Target::Rule(op),
                _ => Target::Result(op),
            };
            self.targets.push((target, span_of(span)));
        }
    }
}

/// The attribute with the axes of a collective, empty if it has none; `None` for other ops.
pub(in crate::mlir) const fn axes_attribute(kind: OpKind) -> Option<&'static str> {
    Some(match kind {
        OpKind::AllGather => "gathering_axes",
        OpKind::AllSlice => "slicing_axes",
        OpKind::AllToAll => "params",
        OpKind::CollectivePermute => "",
        OpKind::AllReduce => "reduction_axes",
        OpKind::ReduceScatter => "reduce_scatter_axes",
        OpKind::ShardedToUnreduced | OpKind::ReplicatedToUnreduced => "axes",
        _ => return None,
    })
}

/// The group with the id `text`, at `span`.
fn sharding_group(text: &str, span: Span) -> Result<Payload> {
    let digits = text.split(':').next().unwrap_or("").trim();
    let id = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).map(|id| id as i64),
        None => digits.parse(),
    };
    let Ok(id) = id else {
        let message = "a sharding group's id is an integer of 64 bits";
        return Err(Diagnostic::new(Code::InvalidOp, message).at(span).into());
    };
    Ok(Payload::ShardingGroup(id))
}

/// The direction `text`, at `span`: a word, or its number in the generic form.
fn direction(text: &str, span: Span) -> Result<Direction> {
    let word = text.split(':').next().unwrap_or("").trim();
    Ok(match &*unescaped(word) {
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
