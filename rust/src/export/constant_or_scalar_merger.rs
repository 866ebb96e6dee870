//! `sdy-constant-or-scalar-merger`: merges equal constants, and equal broadcasts of one scalar, in
//! one region, if their attributes, including shardings, are equal.
//!
//! Import clones a constant for each of its uses, so that shardings do not propagate between them;
//! clones with equal shardings are merged again. The first in program order is kept. Constants of
//! different dialects may be merged.

use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, RegionId, RuleId, ShardingId, SignatureId, StrId, TypeId, ValueId};
use crate::ir::{AlikeOps, Attr, ConstantValue, OpKind, OpTraits, Program};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The properties that two ops must have in common to be merged, besides shardings and the scalars
/// of broadcasts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Class {
    ty: TypeId,
    region: RegionId,
    /// For a broadcast, its signature.
    signature: SignatureId,
    /// For a constant, the number of its value.
    value: Option<u32>,
    /// The number of the attributes, without the value of a constant.
    attrs: u32,
    rule: RuleId,
}

/// The rest of the key by which constants and broadcasts are merged.
type Key = (ValueId, ShardingId);

/// Runs the pass on all functions.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    let found = program.take_handed_on().unwrap_or_else(|| Arc::new(find(program)));
    // For each class the op that was seen last, with its key: most ops of a class have equal keys.
    let mut last: Vec<Option<(Key, OpId)>> = vec![None; found.num_classes];
    let mut kept: FxHashMap<(u32, Key), OpId> = FxHashMap::default();
    for &(op, class) in &found.ops {
        if program.is_erased(op) {
            continue;
        }
        let result = program.result(op, 0);
        let is_broadcast = program.kind(op) == OpKind::BroadcastInDim;
        let scalar = if is_broadcast { program.operand(op, 0) } else { ValueId::NONE };
        let key = (scalar, program.sharding(result));
        let last = &mut last[class as usize];
        let first = match *last {
            Some((known, first)) if known == key => first,
            _ => *kept.entry((class, key)).or_insert(op),
        };
        *last = Some((key, first));
        if first != op {
            program.replace_all_uses(result, program.result(first, 0));
            program.erase_op(op);
        }
    }
    Ok(())
}

/// The ops that may be merged, in classes.
pub fn find(program: &Program) -> AlikeOps {
    let mut known = Known::of(program);
    let mut classes: FxHashMap<Class, u32> = FxHashMap::default();
    let mut ops = Vec::new();
    for op in program.pre_order(program.module_op()) {
        if program.num_results(op) != 1 {
            continue;
        }
        let is_broadcast = program.kind(op) == OpKind::BroadcastInDim;
        if is_broadcast {
            let scalar = program.operands(op).next();
            let is_scalar = |value: ValueId| program.types().is_scalar(program.type_of(value));
            if program.signature(op).is_none() || !scalar.is_some_and(is_scalar) {
                continue;
            }
        } else if !program.has_traits(op, OpTraits::CONSTANT_LIKE) {
            continue;
        }
        let class = Class {
            ty: program.type_of(program.result(op, 0)),
            region: program.block_region(program.parent_block(op)),
            signature: if is_broadcast { program.signature(op) } else { SignatureId::NONE },
            value: (!is_broadcast).then(|| known.value(op)),
            attrs: known.attrs(op, !is_broadcast),
            rule: program.op_rules().get(op),
        };
        let next = classes.len() as u32;
        ops.push((op, *classes.entry(class).or_insert(next)));
    }
    AlikeOps { ops, num_classes: classes.len() }
}

/// Numbers the distinct values of constants, and the distinct attribute lists of ops.
struct Known<'p> {
    program: &'p Program,
    /// The name of the attribute with the value of a constant.
    value_name: StrId,
    values_by_text: FxHashMap<&'p str, u32>,
    values: FxHashMap<ConstantValue<'p>, u32>,
    /// By the address of the dictionary, which clones share, and whether the op is a constant.
    attrs_by_place: FxHashMap<(*const [Attr], bool), u32>,
    /// Sorted by name.
    attrs: FxHashMap<Vec<(StrId, &'p str)>, u32>,
}

impl<'p> Known<'p> {
    fn of(program: &'p Program) -> Self {
        let value_name = program.strings().find("value").unwrap_or_default();
        let (values_by_text, values) = (FxHashMap::default(), FxHashMap::default());
        let (attrs_by_place, attrs) = (FxHashMap::default(), FxHashMap::default());
        Self { program, value_name, values_by_text, values, attrs_by_place, attrs }
    }
    /// The number of the value of `op`, a constant.
    fn value(&mut self, op: OpId) -> u32 {
        let (text, next) = (self.program.constant_text(op), self.values.len() as u32);
        *self
            .values_by_text
            .entry(text)
            .or_insert_with(|| *self.values.entry(ConstantValue::parse(text)).or_insert(next))
    }
    /// The number of the attributes of `op`, without the value of a constant; 0 if there are none.
    fn attrs(&mut self, op: OpId, is_constant: bool) -> u32 {
        let all = self.program.op_attrs(op);
        let is_kept = |attr: &&Attr| !(is_constant && attr.name == self.value_name);
        if !all.iter().any(|attr| is_kept(&attr)) {
            return 0;
        }
        let place = (std::ptr::from_ref(all), is_constant);
        if let Some(&known) = self.attrs_by_place.get(&place) {
            return known;
        }
        let text = |attr: &Attr| (attr.name, self.program.text().get(attr.value));
        let mut kept: Vec<(StrId, &str)> = all.iter().filter(is_kept).map(text).collect();
        kept.sort_unstable_by_key(|attr| attr.0);
        let next = self.attrs.len() as u32 + 1;
        let number = *self.attrs.entry(kept).or_insert(next);
        self.attrs_by_place.insert(place, number);
        number
    }
}
