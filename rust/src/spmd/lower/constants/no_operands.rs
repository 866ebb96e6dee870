//! Constants, iotas and other ops without operands.

use crate::index::{OpId, ValueId};
use crate::ir::{ConstantValue, OpKind};
use crate::mlir::op_attribute;
use crate::spmd::lower::{LocalValue, Lowering, Reducer};
use crate::spmd::outcome::OutcomeKind;

impl Lowering<'_, '_, '_> {
    /// Lowers a constant: a splat gets the local shape, any other is sliced.
    pub fn lower_constant(&mut self, op: OpId) {
        self.note(op, OutcomeKind::Local, std::sync::Arc::default());
        let result = self.emit.program.result(op, 0);
        let target = self.target(result);
        let rank = self.placements[target].dims.len();
        let whole = self.placements.replicated(rank);
        let global = self.emit.program.type_of(result);
        let element = match self.emit.program.constant_value(op) {
            ConstantValue::Text(_) => None,
            _ => splat_text(self.emit.program.constant_text(op)),
        };
        let bits = self.bits(global);
        let element = element.filter(|element| is_one_element(element, bits));
        let is_sdy = self.emit.program.kind(op) == OpKind::SdyConstant;
        let part = if self.how.global_to_local.is_some() && element.is_none() && target != whole {
            self.constant_part(op, target)
        } else {
            None
        };
        if let Some(value) = part {
            let is_zero_padded = false;
            let reducer = Reducer::Add;
            self.set_held(
                result,
                LocalValue { value, global, placement: target, reducer, is_zero_padded },
            );
            self.dead.push(op);
            return;
        }
        let Some(element) = element.filter(|_| target != whole || is_sdy) else {
            if is_sdy {
                self.emit.program.rename_ops(&[op], "stablehlo.constant");
                self.unsharded.push(result);
            }
            if target != whole {
                self.emit.go_after(op);
            }
            let held = self.keep(result, whole);
            let new = self.reshard(held, target);
            self.set_held(result, new);
            return;
        };
        let local = self.local_type(global, target);
        let value = self.emit.splat(&element, local);
        let is_zero_padded = false;
        let held =
            LocalValue { value, global, placement: target, reducer: Reducer::Add, is_zero_padded };
        self.set_held(result, held);
        self.dead.push(op);
    }
    /// Lowers an iota: along a sharded dim it starts at the offset of the shard.
    pub fn lower_iota(&mut self, op: OpId) {
        self.note(op, OutcomeKind::Local, std::sync::Arc::default());
        let result = self.emit.program.result(op, 0);
        let target = self.target(result);
        let global = self.emit.program.type_of(result);
        let dim = op_attribute(self.emit.program, op, "iota_dimension");
        let dim = dim.and_then(|dim| usize::try_from(dim.as_int()?).ok()).unwrap_or(0);
        let placement = self.placements[target].clone();
        let local = self.local_type(global, target);
        let value: ValueId = if placement.dims.get(dim).is_none_or(Vec::is_empty) {
            if local == global {
                self.keep(result, target);
                return;
            }
            let attrs = [("iota_dimension", format!("{dim} : i64"))];
            self.emit.op("stablehlo.iota", &[], local, &attrs)
        } else {
            let shape = self.shape_of(local).unwrap_or_default();
            let number = self.emit.number(placement.order, &placement.dims[dim]);
            let offset = self.emit.times(number, shape[dim]);
            let indices = self.emit.indices(&shape, dim, Some(offset));
            if self.emit.type_of(indices) == local {
                indices
            } else {
                self.emit.op("stablehlo.convert", &[indices], local, &[])
            }
        };
        let is_zero_padded = false;
        let held =
            LocalValue { value, global, placement: target, reducer: Reducer::Add, is_zero_padded };
        self.set_held(result, held);
        self.dead.push(op);
    }
}

/// Whether `text`, in a constant, is one element of `bits` bits, not the hexadecimal digits of several.
fn is_one_element(text: &str, bits: i64) -> bool {
    let digits = text.strip_prefix("\"0x").map_or(0, |digits| digits.trim_end_matches('"').len());
    digits as i64 <= 2 * crate::layout::ceil_div(bits, 8)
}

/// The element in `dense<element>`, with or without brackets around it.
pub(in crate::spmd::lower) fn splat_text(text: &str) -> Option<String> {
    let inner = text.trim().strip_prefix("dense<")?;
    let inner = &inner[..inner.rfind('>')?];
    let inner = inner.rsplit_once("> :").map_or(inner, |(inner, _)| inner);
    let first = inner.trim_start_matches(['[', ' ']);
    let end = first.find([',', ']']).unwrap_or(first.len());
    let element = if first.starts_with('(') { &first[..=first.find(')')?] } else { &first[..end] };
    (!element.trim().is_empty()).then(|| element.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{is_one_element, splat_text};

    #[test]
    fn digits_are_one_element_or_several() {
        assert!(is_one_element("1.5", 32));
        assert!(is_one_element("\"0x00000000\"", 32));
        assert!(!is_one_element("\"0x0000000000000000\"", 32));
        assert!(is_one_element("\"0xFF\"", 1));
    }

    #[test]
    fn elements_are_found() {
        let text = |text| splat_text(text);
        assert_eq!(text("dense<0.0> : tensor<4xf32>").as_deref(), Some("0.0"));
        assert_eq!(text("dense<[[1, 1]]> : tensor<1x2xi32>").as_deref(), Some("1"));
        assert_eq!(text("dense<(0.0,1.0)> : tensor<2xcomplex<f32>>").as_deref(), Some("(0.0,1.0)"));
        assert_eq!(text(" dense<\"0xFF\"> : tensor<i8>").as_deref(), Some("\"0xFF\""));
        assert_eq!(text("dense<> : tensor<0xf32>"), None);
    }
}
