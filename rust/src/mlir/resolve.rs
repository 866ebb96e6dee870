//! What ops mean beyond their form: symbols, meshes, shardings, calls.
//!
//! Meshes may come after the shardings that name them, so shardings are read at the end, each text
//! once.

use super::generic::axes_attr;
use super::parser::{Building, Parser};
use crate::attribute;
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{FuncId, MeshId, OpId, ShardingId, StrId, TypeId, ValueId};
use crate::ir::{Direction, OpKind, Payload, Type};
use crate::suggest;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Where a sharding or rule in the text belongs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// One sharding for each result.
    Results(OpId),
    /// One sharding, of the only result.
    Result(OpId),
    /// One sharding for each argument of the first region.
    RegionArgs(OpId),
    /// An argument of a function.
    Arg(FuncId, u32),
    /// A result of a function.
    FuncResult(FuncId, u32),
    /// A rule.
    Rule(OpId),
    /// The axes of a collective, whose mesh is that of its result's sharding.
    Axes(OpId),
}

/// A call to check.
pub(super) struct Call {
    op: OpId,
    module: OpId,
    callee: StrId,
    span: Span,
}

impl<'a> Parser<'a> {
    /// Notes that `op` defines the symbol at `span`.
    pub(super) fn define_symbol(&mut self, op: OpId, span: Span) -> Result<()> {
        let text = self.attr_name(span);
        let name = self.program.strings.intern(text);
        let module = self.enclosing_module(op);
        let Some((_, first)) = self.symbols.insert((module, name), (op, span)) else {
            return Ok(());
        };
        let message = format!("symbol @{text} is defined twice");
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
    pub(super) fn note_call(&mut self, op: OpId, span: Span) {
        let callee = self.program.strings.intern(self.attr_name(span));
        self.program.ops[op].payload = self.program.payloads.push(Payload::Call(callee));
        let module = self.enclosing_module(op);
        self.calls.push(Call { op, module, callee, span });
    }
    /// Notes a mesh: its name and its attribute.
    pub(super) fn note_mesh(&mut self, op: OpId, name: Span, mesh: Span) -> Result<()> {
        self.define_symbol(op, name)?;
        let symbol = self.program.strings.intern(self.attr_name(name));
        let id = self.program.meshes.add(symbol, crate::Mesh::default());
        self.program.ops[op].payload = self.program.payloads.push(Payload::Mesh(id));
        self.meshes.push((op, mesh));
        Ok(())
    }
    /// Notes what a named computation has.
    pub(super) fn note_named_computation(
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
    pub(super) fn note_meaning(&mut self, building: &Building) -> Result<()> {
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
                let names = attribute::parse_manual_axes(text, span.start)?;
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

    /// Reads meshes and shardings, checks calls.
    pub(super) fn resolve(&mut self) -> Result<()> {
        self.check_dominance()?;
        self.check_regions()?;
        let mut diagnostics = Vec::new();
        for (op, span) in std::mem::take(&mut self.meshes) {
            match self.read_mesh(span) {
                Ok(mesh) => {
                    if let Some(Payload::Mesh(id)) = self.program.payload(op) {
                        let id = *id;
                        self.program.meshes.define(id, mesh);
                    }
                }
                Err(mut error) => diagnostics.append(&mut error.diagnostics),
            }
        }
        Error::check(std::mem::take(&mut diagnostics))?;
        let mut known: FxHashMap<(bool, &'a str), Rc<[ShardingId]>> = FxHashMap::default();
        for (target, span) in std::mem::take(&mut self.targets) {
            if let Err(mut error) = self.read_target(target, span, &mut known) {
                diagnostics.append(&mut error.diagnostics);
            }
        }
        for call in std::mem::take(&mut self.calls) {
            diagnostics.extend(self.check_call(&call));
        }
        Error::check(diagnostics)
    }
    /// The text at `span`, or that of the attribute alias that it is.
    fn attribute_text(&self, span: Span) -> (&'a str, u32) {
        let mut span = span;
        for _ in 0..16 {
            let text = self.text_at(span);
            let alias = self.program.strings.find(text).filter(|_| text.starts_with('#'));
            match alias.and_then(|id| self.program.aliases.get(&id)) {
                Some(&body) => span = body,
                None => break,
            }
        }
        (self.text_at(span), span.start)
    }
    fn read_mesh(&self, span: Span) -> Result<crate::Mesh> {
        let (text, base) = self.attribute_text(span);
        attribute::parse_mesh(text, base)
    }
    fn read_target(
        &mut self,
        target: Target,
        span: Span,
        known: &mut FxHashMap<(bool, &'a str), Rc<[ShardingId]>>,
    ) -> Result<()> {
        match target {
            Target::Rule(op) => {
                let (text, base) = self.attribute_text(span);
                let rule = attribute::parse_rule(text, base)?;
                let rule = self.program.rules.intern(rule);
                self.program.op_rules.set(op, rule);
                return Ok(());
            }
            Target::Axes(op) => return self.read_axes(op, span),
            _ => {}
        }
        let is_list = matches!(target, Target::Results(_) | Target::RegionArgs(_));
        let key = (is_list, self.text_at(span));
        let shardings = if let Some(shardings) = known.get(&key) {
            shardings.clone()
        } else {
            let read = self.read_shardings(is_list, span)?;
            known.insert(key, read.clone());
            read
        };
        self.place_shardings(target, span, &shardings)
    }
    fn read_shardings(&mut self, is_list: bool, span: Span) -> Result<Rc<[ShardingId]>> {
        let (text, base) = self.attribute_text(span);
        let read = if is_list {
            attribute::parse_sharding_per_value(text, base, &mut self.program)?
        } else {
            vec![attribute::parse_sharding(text, base, &mut self.program)?]
        };
        Ok(read.into_iter().map(|sharding| self.program.shardings.intern(sharding)).collect())
    }
    fn place_shardings(
        &mut self,
        target: Target,
        span: Span,
        shardings: &[ShardingId],
    ) -> Result<()> {
        let values: Vec<ValueId> = match target {
            Target::Results(op) | Target::Result(op) if self.program.ops[op].num_results > 0 => {
                self.program.op_results(op).collect()
            }
            Target::Results(op) => {
                self.program.no_result_shardings.insert(op, shardings.to_vec());
                return Ok(());
            }
            Target::RegionArgs(op) => {
                let region = self.program.op_regions(op).next();
                let block = region.map(|region| self.program.region_entry(region));
                let block = block.filter(|block| block.is_some());
                block.map_or(Vec::new(), |block| self.program.block_args(block).collect())
            }
            Target::Arg(id, index) => {
                let body = self.program.functions[id].body;
                if body.is_none() {
                    let ty = self.program.functions[id].arg_types[index as usize];
                    self.check_rank(shardings[0], ty, span)?;
                    let function = &mut self.program.functions[id];
                    function.declared_arg_shardings[index as usize] = shardings[0];
                    return Ok(());
                }
                self.program.block_args(body).nth(index as usize).into_iter().collect()
            }
            Target::FuncResult(id, index) => {
                let ty = self.program.functions[id].result_types[index as usize];
                self.check_rank(shardings[0], ty, span)?;
                self.program.functions[id].result_shardings[index as usize] = shardings[0];
                return Ok(());
            }
            _ => Vec::new(),
        };
        if values.len() != shardings.len() {
            let message = format!(
                "{} for {}",
                super::finish::plural(shardings.len(), "sharding"),
                super::finish::plural(values.len(), "value")
            );
            return Err(Diagnostic::new(Code::InvalidSharding, message).at(span).into());
        }
        for (value, &sharding) in values.into_iter().zip(shardings) {
            self.check_rank(sharding, self.program.values[value].ty, span)?;
            self.program.values[value].sharding = sharding;
        }
        Ok(())
    }
    /// A sharding has a dim for each dim of its value's type; what is not a ranked tensor has none.
    fn check_rank(&self, sharding: ShardingId, ty: TypeId, span: Span) -> Result<()> {
        let sharding = &self.program.shardings[sharding];
        // A tuple of one tensor is sharded like the tensor.
        let ty = match &self.program.types[ty] {
            Type::Tuple(items) if items.len() == 1 => items[0],
            _ => ty,
        };
        let rank = self.program.types[ty].rank().unwrap_or(0);
        if sharding.dims.len() == rank {
            return Ok(());
        }
        let mesh = self.program.mesh(sharding.mesh);
        match attribute::rank_problem(sharding, mesh, rank) {
            Some(problem) => Err(problem.located(|_| Some(span)).into()),
            None => Ok(()),
        }
    }
    fn read_axes(&mut self, op: OpId, span: Span) -> Result<()> {
        let sharding = self.program.op_results(op).next().map(|value| self.program.sharding(value));
        let mesh = sharding.map_or(MeshId::NONE, |sharding| self.program.mesh_of(sharding));
        // Without a mesh the sharding is wrong, which has been said.
        let Some(mesh) = mesh.get() else { return Ok(()) };
        let (text, base) = self.attribute_text(span);
        let mesh = self.program.mesh(mesh);
        let payload = match self.program.kind(op) {
            OpKind::AllToAll => Payload::AllToAll(attribute::parse_all_to_all(text, base, mesh)?),
            OpKind::AllReduce | OpKind::ReplicatedToUnreduced => {
                Payload::Axes(attribute::parse_axis_list(text, base, mesh)?)
            }
            _ => Payload::AxesPerDim(attribute::parse_axes_per_dim(text, base, mesh)?),
        };
        self.program.ops[op].payload = self.program.payloads.push(payload);
        Ok(())
    }
    fn check_call(&self, call: &Call) -> Option<Diagnostic> {
        let callee = self.symbols.get(&(call.module, call.callee));
        let function = callee.map_or(FuncId::NONE, |&(op, _)| self.program.function_of(op));
        let Some(id) = function.get() else {
            let name = self.program.strings.get(call.callee);
            let message = format!("there is no function @{name}");
            let mut diagnostic = Diagnostic::new(Code::UnknownSymbol, message).at(call.span);
            let names = self.program.functions.iter().map(|f| self.program.strings.get(f.name));
            diagnostic.hint = suggest::hint(name, names, |name| format!("@{name}"));
            return Some(diagnostic);
        };
        let function = &self.program.functions[id];
        let operands = self.program.op_operands(call.op);
        let inputs = operands.iter().map(|slot| self.program.values[slot.value].ty);
        let results = self.program.op_results(call.op).map(|value| self.program.values[value].ty);
        if inputs.eq(function.arg_types.iter().copied())
            && results.eq(function.result_types.iter().copied())
        {
            return None;
        }
        let name = self.program.strings.get(call.callee);
        let message = format!("the call's type is not the type of @{name}");
        let related = (function.name_span, "the function".to_owned());
        let mut diagnostic = Diagnostic::new(Code::TypeMismatch, message).at(call.span);
        diagnostic.related = Some(related);
        Some(diagnostic)
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
