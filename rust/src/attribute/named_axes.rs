//! The axes at the end of the text of a sharding: `, replicated={"z"}, unreduced=max{"w"}`.

use super::axis::AxisReader;
use super::cursor::Cursor;
use super::parameter::Parameter;
use super::too_new::too_new;
use crate::axis::AxisRef;
use crate::error::{Code, Diagnostic, Result, Span};
use crate::sharding::ReductionOp;
use crate::shardy::{Change, Version};

/// The two lists of axes at the end of a sharding.
const NAMED: [Parameter; 2] = [
    Parameter::new("Sdy_TensorSharding", "replicated_axes", ""),
    Parameter::new("Sdy_TensorSharding", "unreduced_axes", ""),
];

/// Axes with their spans.
pub(super) type SpannedAxes = Vec<(AxisRef, Span)>;

/// Reads `, replicated={...}` and `, unreduced={...}`, each at most once, and the reduction over
/// the unreduced axes.
pub(super) fn read_named_axes(
    cursor: &mut Cursor<'_>,
    reader: &mut AxisReader<'_>,
    shardy: Version,
) -> Result<([SpannedAxes; 2], ReductionOp)> {
    let mut lists = [Vec::new(), Vec::new()];
    let mut reduction_op = ReductionOp::Sum;
    while cursor.eat(",") {
        let names = ["replicated", "unreduced"];
        let which = (0..2).find(|&at| lists[at].is_empty() && cursor.eat_word(names[at]));
        let Some(which) = which else {
            let message = "failed to parse Sdy_TensorSharding, expected valid named axis list \
                           after comma";
            let hint = "replicated={...} or unreduced={...}, each at most once";
            let problem = Diagnostic::new(Code::Syntax, message).at(cursor.token());
            return Err(problem.with_hint(hint).into());
        };
        lists[which] = cursor.parameter(&NAMED[which], |cursor| {
            if names[which] == "unreduced" {
                reduction_op = read_reduction(cursor, shardy)?;
            } else {
                cursor.expect("=")?;
            }
            cursor.expect("{")?;
            let axes = reader.some(cursor);
            let axes = cursor.or_failed(axes, || {
                "failed to parse axis list which is expected to be an `ArrayRef<AxisRefAttr>`"
                    .to_owned()
            })?;
            cursor.expect("}")?;
            Ok(axes)
        })?;
    }
    Ok((lists, reduction_op))
}

/// Reads the text before the axes of `unreduced={...}` or `unreduced=max{...}`. In versions with
/// reductions, `=` may be missing.
fn read_reduction(cursor: &mut Cursor<'_>, shardy: Version) -> Result<ReductionOp> {
    if !shardy.has(Change::ReductionOps) {
        cursor.expect("=")?;
    } else if !cursor.eat("=") {
        return Ok(ReductionOp::Sum);
    }
    for reduction_op in ReductionOp::ALL {
        let at = cursor.token();
        if !cursor.eat_word(reduction_op.keyword()) {
            continue;
        }
        let what = format!("unreduced={}{{...}}", reduction_op.keyword());
        return match too_new(&what, Change::ReductionOps, shardy) {
            Some(problem) => Err(problem.at(at).into()),
            None => Ok(reduction_op),
        };
    }
    Ok(ReductionOp::Sum)
}
