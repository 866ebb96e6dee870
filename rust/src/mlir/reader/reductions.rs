//! The reductions of Shardy's collectives: `max` before their axes, or `reduction_op = 1 : i32` in
//! generic form.

use super::parser::{Parser, PendingOp};
use crate::attribute::too_new;
use crate::error::{Code, Diagnostic, Result, Span};
use crate::ir::OpKind;
use crate::mlir::escapes::unescaped;
use crate::sharding::ReductionOp;
use crate::shardy::Change;

/// The attribute of collectives with their reduction.
const REDUCTION_OP: &str = "reduction_op";

impl Parser<'_> {
    /// Parses `max`, the reduction of a collective that reduces; without one, it is the sum.
    pub(super) fn parse_reduction(&mut self, pending: &mut PendingOp) -> Result<()> {
        if !reduces(pending.name.kind) {
            return Ok(());
        }
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let is_quoted = self.cursor.peek() == b'"';
        let mut word = self.cursor.name();
        let mut known = ReductionOp::of_keyword(word);
        if is_quoted {
            word = self.cursor.string()?;
            known = ReductionOp::of_keyword(&unescaped(word));
        }
        let at = self.cursor.span_since(start);
        match known {
            _ if word.is_empty() => return Ok(()),
            None if is_quoted && self.program.shardy().has(Change::ReductionOps) => {
                return Err(self.no_case(pending, "reduction_op", &unescaped(word), at));
            }
            None => self.cursor.pos = start,
            Some(reduction_op) => {
                self.check_reduction(reduction_op, at)?;
                pending.annotations.reduction_op = reduction_op;
            }
        }
        Ok(())
    }
    /// Takes the reduction of a collective in generic form off the stack of attributes.
    pub(super) fn take_reduction(&mut self, pending: &mut PendingOp) -> Result<()> {
        if !reduces(pending.name.kind) {
            return Ok(());
        }
        let Some(span) = self.take_attr(pending, REDUCTION_OP) else { return Ok(()) };
        let value = self.text_at(span);
        let number = value.split_once(':').filter(|(_, ty)| ty.trim() == "i32");
        let number = number.and_then(|(number, _)| number.trim().parse::<usize>().ok());
        let Some(&reduction_op) = number.and_then(|number| ReductionOp::ALL.get(number)) else {
            let op = self.program.str(pending.name.id);
            let properties = Some(pending.syntax).filter(|syntax| span.end <= syntax.end);
            let properties = properties.and_then(|syntax| self.text_at(syntax).split_once("<{"));
            let message = match properties {
                Some((_, rest)) => {
                    let rest = rest.trim_end_matches('>');
                    format!(
                        "invalid properties {{{rest} for op {op}: Invalid attribute `{REDUCTION_OP}` in property \
                         conversion: {value}"
                    )
                }
                None => format!(
                    "'{op}' op attribute '{REDUCTION_OP}' failed to satisfy constraint: reduction op enum"
                ),
            };
            return Err(Diagnostic::new(Code::InvalidOp, message).at(span).into());
        };
        if reduction_op != ReductionOp::Sum {
            self.check_reduction(reduction_op, span)?;
        }
        pending.annotations.reduction_op = reduction_op;
        Ok(())
    }
    /// Fails if the program's version of Shardy does not have `reduction_op`, written at `at`.
    fn check_reduction(&self, reduction_op: ReductionOp, at: Span) -> Result<()> {
        let what = format!("the reduction '{}' of a collective", reduction_op.keyword());
        match too_new(&what, Change::ReductionOps, self.program.shardy()) {
            Some(problem) => Err(problem.at(at).into()),
            None => Ok(()),
        }
    }
}

/// Whether ops of `kind` are collectives that reduce.
const fn reduces(kind: OpKind) -> bool {
    matches!(kind, OpKind::AllReduce | OpKind::ReduceScatter)
}
