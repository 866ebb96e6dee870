//! The state of the conversion of one function: padded types, replaced values, masks.

use crate::index::{Id, OpId, TypeId, ValueId};
use crate::ir::{InsertPoint, NewOp, OpKind, Program};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// The known contents of the padding of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Padding {
    Zeros,
    Ones,
}

/// The conversion of one function.
#[derive(Default)]
pub(super) struct Conversion {
    /// Ops with this id or a larger one are new.
    pub(super) num_old_ops: usize,
    /// The types of values before padding.
    pub(super) original: FxHashMap<ValueId, TypeId>,
    /// The replacements of values.
    pub(super) replaced: FxHashMap<ValueId, ValueId>,
    /// Casts, by operand and result type.
    pub(super) casts: FxHashMap<(ValueId, TypeId), ValueId>,
    /// The contents of the padding of values, if known.
    pub(super) padding: FxHashMap<ValueId, Padding>,
    pub(super) converted: FxHashSet<OpId>,
    /// Slices that were replaced by other slices.
    pub(super) erased: BTreeSet<ValueId>,
    /// Ops on padded operands whose results may depend on the padding, with their operands before padding.
    pub(super) at_risk: Vec<(OpId, Vec<ValueId>)>,
    /// Whether any op runs on its true size; then casts are replaced by slices and paddings.
    pub(super) has_true_sizes: bool,
}

impl Conversion {
    pub(super) fn original_type(&self, program: &Program, value: ValueId) -> TypeId {
        self.original.get(&value).copied().unwrap_or(program.type_of(value))
    }
    /// The contents of the padding of `value`, if known.
    pub(super) fn padding_of(&self, value: ValueId) -> Option<Padding> {
        self.padding.get(&value).copied()
    }
    /// Sets the contents of the padding of `value`, if known.
    pub(super) fn set_padding(&mut self, value: ValueId, padding: Option<Padding>) {
        if let Some(padding) = padding {
            self.padding.insert(value, padding);
        }
    }
    /// Whether `op` is new, or was converted to its padded operand types.
    pub(super) fn is_converted(&self, op: OpId) -> bool {
        op.index() >= self.num_old_ops || self.converted.contains(&op)
    }
    /// `value`, or its replacement, cast to type `ty`.
    pub(super) fn of_type(&mut self, program: &mut Program, value: ValueId, ty: TypeId) -> ValueId {
        let latest = self.replaced.get(&value).copied().unwrap_or(value);
        if program.type_of(latest) == ty {
            return latest;
        }
        if program.type_of(value) == ty && !self.erased.contains(&value) {
            return value;
        }
        if let Some(&cast) = self.casts.get(&(latest, ty)) {
            return cast;
        }
        let at = program.after_value(latest).with_loc(program.value_loc(value));
        self.cast(program, latest, ty, at)
    }
    pub(super) fn cast(
        &mut self,
        program: &mut Program,
        value: ValueId,
        ty: TypeId,
        at: InsertPoint,
    ) -> ValueId {
        let cast = NewOp::of_kind(OpKind::UnrealizedConversionCast, &[value], &[ty]);
        let result = program.build_value(cast, at);
        self.casts.insert((value, ty), result);
        result
    }
}
