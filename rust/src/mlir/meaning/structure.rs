//! Structure that the engine relies on: how many operands, results and regions an op has, and what its
//! regions return.
//!
//! MLIR checks much more; what is checked here is what passes take for granted.

use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{BlockId, OpId, RegionId, TypeId};
use crate::ir::{OpKind, OpTraits, Payload};
use crate::mlir::reader::finish::plural;
use crate::mlir::reader::parser::{Building, Parser};

/// What an op has: operands, results, regions; `None` for any number.
type Arity = (Option<usize>, Option<usize>, Option<usize>);

const fn arity(kind: OpKind) -> Arity {
    const ONE: Option<usize> = Some(1);
    const NO: Option<usize> = Some(0);
    match kind {
        OpKind::Module | OpKind::Func => (NO, NO, ONE),
        OpKind::Mesh => (NO, NO, NO),
        OpKind::FuncReturn | OpKind::SdyReturn | OpKind::StablehloReturn => (None, NO, NO),
        OpKind::ShardingConstraint
        | OpKind::Reshard
        | OpKind::DataFlowEdge
        | OpKind::FuncDataFlowEdge
        | OpKind::PropagationBarrier
        | OpKind::AllGather
        | OpKind::AllSlice
        | OpKind::AllToAll
        | OpKind::CollectivePermute
        | OpKind::AllReduce
        | OpKind::ReduceScatter
        | OpKind::ShardedToUnreduced
        | OpKind::ReplicatedToUnreduced
        | OpKind::Reshape
        | OpKind::Transpose
        | OpKind::BroadcastInDim
        | OpKind::Slice
        | OpKind::BitcastConvert
        | OpKind::GetTupleElement => (ONE, ONE, NO),
        OpKind::ShardingGroup => (ONE, NO, NO),
        OpKind::Constant | OpKind::SdyConstant | OpKind::Iota => (NO, ONE, NO),
        OpKind::While => (None, None, Some(2)),
        OpKind::If => (ONE, None, Some(2)),
        OpKind::Case => (ONE, None, None),
        OpKind::Dot | OpKind::DotGeneral | OpKind::Convolution | OpKind::Gather | OpKind::Pad => {
            (Some(2), ONE, NO)
        }
        OpKind::DynamicSlice | OpKind::DynamicUpdateSlice | OpKind::Concatenate | OpKind::Tuple => {
            (None, ONE, NO)
        }
        OpKind::ManualComputation
        | OpKind::NamedComputation
        | OpKind::Reduce
        | OpKind::ReduceWindow
        | OpKind::Scatter
        | OpKind::Sort => (None, None, ONE),
        OpKind::SelectAndScatter => (Some(3), ONE, Some(2)),
        _ => (None, None, None),
    }
}

impl Parser<'_> {
    /// Checks the numbers of operands, results and regions of an op that is complete.
    pub(in crate::mlir) fn check_arity(&mut self, building: &Building) -> Result<()> {
        let kind = building.name.kind;
        let row = &self.program.ops[building.op];
        let has = [row.num_operands as usize, row.num_results as usize, row.num_regions as usize];
        let (operands, results, regions) = arity(kind);
        let regions =
            regions.filter(|_| kind != OpKind::Func || building.is_generic || has[2] != 0);
        let needs = [operands, results, regions];
        let nouns = ["operand", "result", "region"];
        for ((has, needs), noun) in has.into_iter().zip(needs).zip(nouns) {
            if let Some(needs) = needs.filter(|&needs| needs != has) {
                let name = self.program.strings.get(building.name.id);
                let message = format!("{name} has {}, and this one has {has}", plural(needs, noun));
                let span = self.name_span(building);
                return Err(Diagnostic::new(Code::InvalidOp, message).at(span).into());
            }
        }
        if has[2] > 0 && building.name.syntax != crate::ir::Syntax::Generic
            || matches!(kind, OpKind::Case | OpKind::If)
        {
            self.region_ops.push((building.op, self.name_span(building)));
        }
        let is_same = matches!(kind, OpKind::While | OpKind::OptimizationBarrier);
        if is_same && has[0] != has[1] {
            let message = "the op has as many results as operands";
            let span = self.name_span(building);
            return Err(Diagnostic::new(Code::InvalidOp, message).at(span).into());
        }
        Ok(())
    }
    /// Checks the arguments and returned values of the regions of known ops.
    pub(in crate::mlir) fn check_regions(&mut self) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for (op, span) in std::mem::take(&mut self.region_ops) {
            if let Err(error) = self.check_regions_of(op, span) {
                problems.extend(error.diagnostics);
            }
        }
        problems
    }
    fn check_regions_of(&self, op: OpId, span: Span) -> Result<()> {
        let program = &self.program;
        let results: Vec<TypeId> =
            program.op_results(op).map(|value| program.values[value].ty).collect();
        let num_operands = program.ops[op].num_operands as usize;
        for (index, region) in program.op_regions(op).enumerate() {
            match program.kind(op) {
                OpKind::Func => {
                    let Some(Payload::Function(id)) = program.payload(op) else { continue };
                    if program.functions[*id].body.is_some() {
                        let types: Vec<TypeId> =
                            program.func_results(*id).iter().map(|result| result.ty).collect();
                        self.check_returns(region, span, Some(&types))?;
                    }
                }
                OpKind::While => {
                    self.check_args(region, span, num_operands)?;
                    // Types may differ where dims are dynamic.
                    let count = if index == 1 { results.len() } else { 1 };
                    self.check_return_count(region, span, count)?;
                }
                OpKind::Case | OpKind::If => {
                    self.check_args(region, span, 0)?;
                    self.check_return_count(region, span, results.len())?;
                }
                OpKind::NamedComputation => {
                    let args = self.num_args(region);
                    if args != num_operands {
                        let message = format!(
                            "number of block arguments must match the number of operands: \
                             {args} != {num_operands}"
                        );
                        return Err(Diagnostic::new(Code::InvalidOp, message).at(span).into());
                    }
                    self.check_inferred(region, span, &results)?;
                }
                OpKind::ManualComputation => {
                    Self::check_sides(span, "operand", num_operands, self.num_args(region))?;
                    // The types inside are local: only their number has to agree.
                    let returned = self.returned(region, span)?.len();
                    Self::check_sides(span, "result", results.len(), returned)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
    fn num_args(&self, region: RegionId) -> usize {
        let block = self.program.region_entry(region);
        block.get().map_or(0, |block| self.program.blocks[block].num_args as usize)
    }
    /// The types of what `region`, of one block, returns.
    fn returned(&self, region: RegionId, span: Span) -> Result<Vec<TypeId>> {
        let block = self.program.region_entry(region).get().ok_or_else(|| no_terminator(span))?;
        let terminator = self.terminator(block, span)?;
        let operands = self.program.op_operands(terminator).iter();
        Ok(operands.map(|slot| self.program.values[slot.value].ty).collect())
    }
    /// A manual computation has as many values of a kind as its region.
    fn check_sides(span: Span, side: &str, outer: usize, inner: usize) -> Result<()> {
        if outer == inner {
            return Ok(());
        }
        let message = format!(
            "'sdy.manual_computation' op number of op {side}s and region {side}s must match. Op has \
             {outer} op {side}s and {inner} region {side}s"
        );
        Err(Diagnostic::new(Code::TypeMismatch, message).at(span).into())
    }
    /// The results of a named computation at `span` have the types of what its body returns.
    fn check_inferred(&self, region: RegionId, span: Span, results: &[TypeId]) -> Result<()> {
        let returned = self.returned(region, span)?;
        if returned == results {
            return Ok(());
        }
        let list = |types: &[TypeId]| {
            let text = |&ty| format!("'{}'", self.program.text.get(self.program.types.text(ty)));
            types.iter().map(text).collect::<Vec<_>>().join(", ")
        };
        let (inferred, given) = (list(&returned), list(results));
        let name = "'sdy.named_computation' op";
        let reason = format!(
            "{name} inferred type(s) {inferred} are incompatible with return type(s) of operation \
             {given}"
        );
        let failure = format!("{name} failed to infer returned types");
        let said = [reason, failure].map(|text| Diagnostic::new(Code::TypeMismatch, text).at(span));
        Err(Error { diagnostics: said.into() })
    }
    fn check_args(&self, region: RegionId, span: Span, count: usize) -> Result<()> {
        let block = self.program.region_entry(region);
        let args = block.get().map_or(0, |block| self.program.blocks[block].num_args as usize);
        if block.is_some() && args == count {
            return Ok(());
        }
        let message =
            format!("a region of this op has {}, and it needs {count}", plural(args, "argument"));
        Err(Diagnostic::new(Code::InvalidOp, message).at(span).into())
    }
    fn check_return_count(&self, region: RegionId, span: Span, count: usize) -> Result<()> {
        let Some(block) = self.program.region_entry(region).get() else {
            return Err(no_terminator(span));
        };
        let terminator = self.terminator(block, span)?;
        let returned = self.program.ops[terminator].num_operands as usize;
        if returned == count || self.program.blocks[block].next.is_some() {
            return Ok(());
        }
        let message = format!(
            "the body returns {}, and the op has {}",
            plural(returned, "value"),
            plural(count, "result")
        );
        Err(Diagnostic::new(Code::TypeMismatch, message).at(self.op_span(terminator)).into())
    }
    /// Checks that the blocks of `region` end with terminators, and that those that return do so with
    /// these types.
    fn check_returns(&self, region: RegionId, span: Span, types: Option<&[TypeId]>) -> Result<()> {
        if self.program.region_entry(region).is_none() {
            return Err(no_terminator(span));
        }
        for block in self.program.region_blocks(region) {
            let terminator = self.terminator(block, span)?;
            let is_return = matches!(
                self.program.kind(terminator),
                OpKind::FuncReturn | OpKind::SdyReturn | OpKind::StablehloReturn
            );
            let Some(types) = types.filter(|_| is_return) else { continue };
            let operands = self.program.op_operands(terminator);
            let returned = operands.iter().map(|slot| self.program.values[slot.value].ty);
            if !returned.eq(types.iter().copied()) {
                let message = "the types of the returned values are not those of the results";
                return Err(Diagnostic::new(Code::TypeMismatch, message)
                    .at(self.op_span(terminator))
                    .with_related(span, "the results of this")
                    .into());
            }
        }
        Ok(())
    }
    /// The terminator of `block`: its last op, unless that is known to be no terminator.
    fn terminator(&self, block: BlockId, span: Span) -> Result<OpId> {
        let last = self.program.blocks[block].last_op.get();
        let is_terminator = |&op: &OpId| {
            let info = crate::ir::OpInfo::by_name(self.program.op_name(op));
            info.is_none_or(|info| info.traits.has(OpTraits::TERMINATOR))
        };
        last.filter(is_terminator).ok_or_else(|| match last {
            Some(op) => no_terminator(self.op_span(op)),
            None => no_terminator(span),
        })
    }
    /// The text of `op` without the space before it, or its first line.
    fn op_span(&self, op: OpId) -> Span {
        let span = self.program.op_texts[op].span;
        let mut cursor = crate::mlir::cursor::Cursor::new(self.cursor.text(), span.start as usize);
        cursor.skip_space();
        let text = self.text_at(Span::new(cursor.pos as u32, span.end));
        let len = text.find('\n').unwrap_or(text.len());
        Span::new(cursor.pos as u32, (cursor.pos + len) as u32)
    }
}

fn no_terminator(span: Span) -> crate::Error {
    let message = "the block does not end with a terminator";
    Diagnostic::new(Code::InvalidOp, message)
        .at(span)
        .with_hint("end it with a return, even if it returns nothing")
        .into()
}
