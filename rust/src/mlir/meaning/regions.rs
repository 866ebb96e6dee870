//! Checks the regions of known ops: their arguments, and the values that they return.
//!
//! MLIR checks more; these checks cover what passes rely on.

use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{BlockId, FuncId, OpId, RegionId, TypeId};
use crate::ir::{OpKind, OpTraits, Payload, Program};

/// The errors of the regions of `ops`, given with the spans of their names.
pub(super) fn region_problems(program: &Program, ops: &[(OpId, Span)]) -> Vec<Diagnostic> {
    let regions = Regions { program };
    let found = ops.iter().filter_map(|&(op, span)| regions.check(op, span).err());
    found.flat_map(|error| error.diagnostics).collect()
}

/// The regions of a program.
struct Regions<'p> {
    program: &'p Program,
}

impl Regions<'_> {
    fn check(&self, op: OpId, span: Span) -> Result<()> {
        let program = self.program;
        let results: Vec<TypeId> =
            program.op_results(op).map(|value| program.type_of(value)).collect();
        let num_operands = program.num_operands(op);
        for region in program.op_regions(op) {
            match program.kind(op) {
                OpKind::Func => {
                    let Some(Payload::Function(id)) = program.payload(op) else { continue };
                    if program.func_body(*id).is_some() {
                        self.check_returns(region, span, *id)?;
                    }
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
                    // The types inside are local, so only their number is compared.
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
        block.get().map_or(0, |block| self.program.num_block_args(block))
    }
    /// The types of the values that `region`, which has one block, returns.
    fn returned(&self, region: RegionId, span: Span) -> Result<Vec<TypeId>> {
        let block =
            self.program.region_entry(region).get().ok_or_else(|| no_terminator(EMPTY, span))?;
        let terminator = self.terminator(block, span)?;
        let operands = self.program.operands(terminator);
        Ok(operands.map(|value| self.program.type_of(value)).collect())
    }
    /// Checks that a manual computation has as many operands or results as its region has arguments
    /// or returned values.
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
    /// Checks that the results of a named computation at `span` have the types of the returned values.
    fn check_inferred(&self, region: RegionId, span: Span, results: &[TypeId]) -> Result<()> {
        let returned = self.returned(region, span)?;
        if returned == results {
            return Ok(());
        }
        let list = |types: &[TypeId]| {
            let text = |&ty| format!("'{}'", self.program.type_text(ty));
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
    /// Checks that the blocks of the body of `func` end with terminators, and that returns have the
    /// types of its results.
    fn check_returns(&self, region: RegionId, span: Span, func: FuncId) -> Result<()> {
        if self.program.region_entry(region).is_none() {
            return Err(no_terminator(EMPTY, span));
        }
        for block in self.program.region_blocks(region) {
            let terminator = self.terminator(block, span)?;
            if self.program.kind(terminator) != OpKind::FuncReturn {
                continue;
            }
            if let Some(message) = self.wrong_return(terminator, func) {
                return Err(Diagnostic::new(Code::TypeMismatch, message)
                    .at(self.program.op_span(terminator).unwrap_or_default())
                    .with_related(span, "the results of this")
                    .into());
            }
        }
        Ok(())
    }
    /// The error message if `op`, which returns from `func`, is wrong.
    fn wrong_return(&self, op: OpId, func: FuncId) -> Option<String> {
        let program = self.program;
        let returned: Vec<TypeId> =
            program.operands(op).map(|value| program.type_of(value)).collect();
        let results: Vec<TypeId> = program.func_results(func).iter().map(|port| port.ty).collect();
        let name = program.str(program.func_name(func));
        let (has, needs) = (returned.len(), results.len());
        if has != needs {
            return Some(format!(
                "'func.return' op has {has} operands, but enclosing function (@{name}) returns {needs}"
            ));
        }
        let at = (0..has).find(|&at| returned[at] != results[at])?;
        let (given, needed) = (program.type_text(returned[at]), program.type_text(results[at]));
        Some(format!(
            "type of return operand {at} ('{given}') doesn't match function result type ('{needed}') \
             in function @{name}"
        ))
    }
    /// The terminator of `block`: its last op, unless it is known not to be a terminator.
    fn terminator(&self, block: BlockId, span: Span) -> Result<OpId> {
        let last = self.program.last_op(block).get();
        let is_terminator = |&op: &OpId| {
            let info = crate::ir::OpInfo::by_name(self.program.op_name(op));
            info.is_none_or(|info| info.traits.has(OpTraits::TERMINATOR))
        };
        last.filter(is_terminator).ok_or_else(|| match last {
            Some(op) => {
                let message = "the block does not end with a terminator";
                no_terminator(message, self.program.op_span(op).unwrap_or_default())
            }
            None => no_terminator(EMPTY, span),
        })
    }
}

/// MLIR's error for a block without ops.
const EMPTY: &str = "empty block: expect at least a terminator";

fn no_terminator(message: &str, span: Span) -> crate::Error {
    Diagnostic::new(Code::InvalidOp, message)
        .at(span)
        .with_hint("end it with a return, even if it returns nothing")
        .into()
}
