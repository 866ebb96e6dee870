//! The reducer `log(exp(a) + exp(b))` as JAX writes it, for `cumlogsumexp`.

use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;
use crate::spmd::emit::Emitter;

/// Whether the region of `op` returns `log(exp(a) + exp(b))` of its arguments in the form in which [`emit`] builds it.
pub(in crate::spmd::lower) fn is_region_of(program: &Program, op: OpId) -> bool {
    matches(program, op).is_some()
}

fn matches(program: &Program, op: OpId) -> Option<()> {
    let block = program.region_entry(program.op_regions(op).next()?).get()?;
    let args: Vec<ValueId> = program.block_args(block).collect();
    let end = program.last_op(block);
    if program.kind(end) != OpKind::StablehloReturn || program.num_regions(op) != 1 {
        return None;
    }
    let of = |value: ValueId, name: &str| -> Option<Vec<ValueId>> {
        let inner = program.defining_op(value)?;
        (program.op_name(inner) == name).then(|| program.operands(inner).collect())
    };
    let one = |value: ValueId, name: &str| of(value, name).map(|operands| operands[0]);
    let [result] = program.operands(end).collect::<Vec<_>>()[..] else { return None };
    let [is_nan, sum, other] = of(result, "stablehlo.select")?[..] else { return None };
    let [largest, rest] = of(other, "stablehlo.add")?[..] else { return None };
    let exponent = one(one(rest, "stablehlo.log_plus_one")?, "stablehlo.exponential")?;
    let gap = one(one(exponent, "stablehlo.negate")?, "stablehlo.abs")?;
    let direction = op_attribute(program, program.defining_op(is_nan)?, "comparison_direction")?;
    let is_form = of(is_nan, "stablehlo.compare")? == [gap, gap]
        && direction.as_str() == Some("NE")
        && of(gap, "stablehlo.subtract")? == args
        && of(largest, "stablehlo.maximum")? == args
        && of(sum, "stablehlo.add")? == args;
    is_form.then_some(())
}

/// `log(exp(a) + exp(b))`, element by element.
pub(in crate::spmd::lower) fn emit(emit: &mut Emitter<'_>, a: ValueId, b: ValueId) -> ValueId {
    let largest = emit.elementwise("stablehlo.maximum", &[a, b]);
    let gap = emit.elementwise("stablehlo.subtract", &[a, b]);
    let is_nan = emit.compare("NE", gap, gap);
    let sum = emit.elementwise("stablehlo.add", &[a, b]);
    let mut rest = gap;
    for name in ["abs", "negate", "exponential", "log_plus_one"] {
        rest = emit.elementwise(&format!("stablehlo.{name}"), &[rest]);
    }
    let other = emit.elementwise("stablehlo.add", &[largest, rest]);
    emit.select(is_nan, sum, other)
}
