//! Pads constants: a splat is repeated, other constants get zeros at the ends of dims.

use super::conversion::Conversion;
use super::shapes::padded_type;
use crate::index::{OpId, TypeId, ValueId};
use crate::ir::{ConstantValue, NewOp, Program};

/// The largest number of elements of a padded list, since a mesh with many devices may require
/// arbitrarily many.
const MAX_ELEMENTS: usize = 1 << 20;

impl Conversion {
    /// Pads the constant `op`; returns false and does nothing if its elements cannot be read.
    pub(super) fn pad_constant(&mut self, program: &mut Program, op: OpId) -> bool {
        let result = program.result(op, 0);
        let (ty, sharding) = (program.type_of(result), program.sharding(result));
        let ty = padded_type(program, ty, sharding);
        let Some(new) = padded_constant(program, op, ty) else { return false };
        self.replaced.insert(result, new);
        self.erased.insert(result);
        self.converted.insert(op);
        true
    }
}

/// A padded copy of the constant `op` with type `ty`, right before it; `None` if the elements of
/// `op` cannot be read.
pub fn padded_constant(program: &mut Program, op: OpId, ty: TypeId) -> Option<ValueId> {
    let result = program.result(op, 0);
    let elements = match program.constant_value(op) {
        ConstantValue::Splat(_) | ConstantValue::Element(_) => {
            let text = program.constant_text(op);
            let text = text.rsplit_once(':').map_or(text, |(value, _)| value).trim();
            splat_of(text)?.to_owned()
        }
        ConstantValue::Text(text) => {
            let list = text.strip_prefix("dense<")?.strip_suffix('>')?.trim();
            let shape = |ty: TypeId| program.types()[ty].static_shape();
            let (old, new) = (shape(program.type_of(result))?, shape(ty)?);
            padded_list(list, &old, &new, program.zero_text(ty))?
        }
    };
    let value = format!("dense<{elements}> : {}", program.type_text(ty));
    let constant = NewOp::of_kind(program.kind(op), &[], &[ty])
        .sharding(program.sharding(result))
        .attr("value", value);
    Some(program.build_value(constant, program.before(op)))
}

/// The splat element of `text`, `dense<...>`: its first element.
fn splat_of(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("dense<")?.strip_suffix('>')?.trim();
    let start = inner.trim_start_matches(|c: char| c == '[' || c.is_whitespace());
    let end = if inner.starts_with('[') { start.find([',', ']'])? } else { start.len() };
    Some(start[..end].trim())
}

/// `list`, nested lists of shape `old`, padded with `zero` to the shape `new`.
fn padded_list(list: &str, old: &[i64], new: &[i64], zero: &str) -> Option<String> {
    if num_elements(new)? > MAX_ELEMENTS {
        return None;
    }
    let elements = elements_of(list)?;
    if num_elements(old)? != elements.len() || old.len() != new.len() {
        return None;
    }
    let mut text = String::with_capacity(2 * list.len());
    write_list(&mut text, &elements, (old, new), zero);
    Some(text)
}

/// The number of elements of a tensor of this shape.
fn num_elements(shape: &[i64]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |n, &size| n.checked_mul(usize::try_from(size).ok()?))
}

/// The elements of nested lists of numbers, in order; `None` if there are other elements.
fn elements_of(list: &str) -> Option<Vec<&str>> {
    let is_simple = list.starts_with('[') && !list.contains(['"', '(']);
    let parts = list.split(|c: char| c == '[' || c == ']' || c == ',' || c.is_whitespace());
    is_simple.then(|| parts.filter(|part| !part.is_empty()).collect())
}

/// Writes `elements`, of shape `old`, as nested lists of shape `new`.
fn write_list(text: &mut String, elements: &[&str], (old, new): (&[i64], &[i64]), zero: &str) {
    let ([old_size, old_rest @ ..], [new_size, new_rest @ ..]) = (old, new) else {
        text.push_str(elements.first().copied().unwrap_or(zero));
        return;
    };
    let step = elements.len() / (*old_size).max(1) as usize;
    text.push('[');
    for index in 0..*new_size {
        if index > 0 {
            text.push_str(", ");
        }
        let start = (index.min(*old_size) as usize * step).min(elements.len());
        let end = (start + if index < *old_size { step } else { 0 }).min(elements.len());
        write_list(text, &elements[start..end], (old_rest, new_rest), zero);
    }
    text.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_padded_with_zeros() {
        let padded = |list, old: &[i64], new: &[i64]| padded_list(list, old, new, "0");
        assert_eq!(padded("[1, 2, 3]", &[3], &[4]).unwrap(), "[1, 2, 3, 0]");
        let square = padded("[[1, 2], [3, 4]]", &[2, 2], &[3, 4]).unwrap();
        assert_eq!(square, "[[1, 2, 0, 0], [3, 4, 0, 0], [0, 0, 0, 0]]");
        assert_eq!(padded("\"0x00\"", &[3], &[4]), None);
        assert_eq!(padded("[1, 2]", &[3], &[4]), None);
        assert_eq!(padded("[1, 2, 3]", &[3], &[1 << 40]), None);
        assert_eq!(padded("[1, 2, 3]", &[3], &[1 << 40, 1 << 40]), None);
    }

    #[test]
    fn splats_are_read_from_any_spelling() {
        assert_eq!(splat_of("dense<2.0>"), Some("2.0"));
        assert_eq!(splat_of("dense<(1.0,2.0)>"), Some("(1.0,2.0)"));
        assert_eq!(splat_of("dense<[[1, 1], [1, 1]]>"), Some("1"));
    }
}
