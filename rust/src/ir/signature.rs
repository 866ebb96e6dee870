//! Signatures: everything that the sharding rule of an op may depend on.
//!
//! Two ops have the same signature if they have the same name, the same text but for SSA names,
//! discardable attributes and locations, the same operand types and the same result types. A
//! 96-layer model has a few hundred signatures; rules are built once for each.

use super::{Interner, OpFlags, OpKind, OpTraits, Program, Span};
use crate::index::{Id, IdRange, IdVec, OpId, RuleId, SignatureId, StrId, TypeId, UseId, ValueId};
use rustc_hash::FxHashMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What the rule of an op may depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The op's full name.
    pub name: StrId,
    /// The first op that has this signature: its attributes and custom syntax are every such op's.
    pub example: OpId,
    /// The example's text between its name and its first region or type signature, which has the
    /// attributes in custom syntax.
    pub syntax: Span,
    /// The length of its key without types.
    pub stem_len: u32,
    /// Operand types.
    pub operand_types: Box<[TypeId]>,
    /// Result types.
    pub result_types: Box<[TypeId]>,
}

/// The rules of a program's signatures, as far as they were computed.
///
/// A signature has at most two: an op has the second one if the ops around it meet a condition that the rule
/// source defines. The two are equal if the rule does not depend on the ops around it.
#[derive(Clone, Debug, Default)]
pub struct SignatureRules {
    /// The generation of the rule source that the rules are from; 0 if there are none yet.
    generation: u64,
    /// The number of op ids that were searched for ops without a signature.
    pub(super) signed_ops: usize,
    plain: IdVec<SignatureId, [RuleId; 2]>,
    conservative: IdVec<SignatureId, [RuleId; 2]>,
}

impl SignatureRules {
    /// The generation of the rule source that the rules are from; 0 if there are none yet.
    pub const fn generation(&self) -> u64 {
        self.generation
    }
    /// Drops all rules, and sets the generation of those to come.
    pub fn reset(&mut self, generation: u64) {
        *self = Self { generation, signed_ops: self.signed_ops, ..Self::default() };
    }
    /// The rules of signatures in plain or conservative propagation.
    pub fn of(&self, conservative: bool) -> &IdVec<SignatureId, [RuleId; 2]> {
        if conservative {
            &self.conservative
        } else {
            &self.plain
        }
    }
    /// The rules of signatures in plain or conservative propagation, to add to.
    pub fn of_mut(&mut self, conservative: bool) -> &mut IdVec<SignatureId, [RuleId; 2]> {
        if conservative {
            &mut self.conservative
        } else {
            &mut self.plain
        }
    }
}

/// Whether an op of this kind may have a rule: not terminators, constants, calls, sharding groups, and ops that
/// define symbols.
pub fn may_have_rule(kind: OpKind, traits: OpTraits) -> bool {
    !traits.has(OpTraits::TERMINATOR)
        && !traits.has(OpTraits::CONSTANT_LIKE)
        && !matches!(
            kind,
            OpKind::Module | OpKind::Func | OpKind::Mesh | OpKind::Call | OpKind::ShardingGroup
        )
}

/// Longer attribute values, in bytes, are replaced by their hash in keys.
const MAX_VALUE_LEN: usize = 512;

/// The separator in keys before the types of operands.
const TYPES: char = '\u{1}';
/// The separator in keys before the types of results.
const RESULT_TYPES: char = '\u{2}';

/// Adds attribute `name` of an op to its key.
pub fn write_attr(name: &str, value: &str, key: &mut String) {
    // Attributes with a dialect in their name are discardable.
    if name.contains('.') {
        return;
    }
    key.push('\0');
    key.push_str(name);
    if value.len() <= MAX_VALUE_LEN {
        key.push('=');
        key.push_str(value);
        return;
    }
    // Keys have only a hash of long values, so that these are not stored twice.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    let _ = write!(key, "#{} {}", hasher.finish(), value.len());
}

impl Program {
    /// Ends `key`, which has the name, syntax and attributes of an op, with its types.
    pub fn write_types(&self, operands: &[TypeId], results: &[TypeId], key: &mut String) {
        for (start, types) in [(TYPES, operands), (RESULT_TYPES, results)] {
            key.push(start);
            for &ty in types {
                key.push_str(self.text.get(self.types.text(ty)));
                key.push('\0');
            }
        }
    }
    /// Whether ops were made since the last call of [`Program::take_new_ops`].
    pub fn has_new_ops(&self) -> bool {
        self.signature_rules.signed_ops < self.ops.len()
    }
    /// The ops that were made since the last call.
    pub fn take_new_ops(&mut self) -> IdRange<OpId> {
        let first = std::mem::replace(&mut self.signature_rules.signed_ops, self.ops.len());
        IdRange::new(first..self.ops.len())
    }
    /// Whether `op` is in the program, could have a rule, and has no signature yet.
    pub fn lacks_signature(&self, op: OpId) -> bool {
        let row = &self.ops[op];
        row.signature.is_none() && row.parent.is_some() && may_have_rule(row.kind, row.traits)
    }
    /// Whether the operands and results of `op` have the types that its signature says; false if it has none.
    pub fn has_types_of_signature(&self, op: OpId) -> bool {
        let Some(id) = self.signature(op).get() else { return false };
        let Signature { operand_types, result_types, .. } = &self.signatures[id];
        let (operands, results) = (self.op_operands(op), self.op_results(op));
        if (operands.len(), results.len()) != (operand_types.len(), result_types.len()) {
            return false;
        }
        let mut operands = operands.iter().zip(operand_types);
        let mut results = results.zip(result_types);
        results.all(|(value, &ty)| self.values[value].ty == ty)
            && operands.all(|(slot, &ty)| self.values[slot.value].ty == ty)
    }
    /// Updates the signature of `op` after the types of its operands or results have changed.
    fn resign_op(&mut self, op: OpId) {
        let Some(old) = self.ops[op].signature.get() else { return };
        let mut key = self.signatures.key_without_types(old).to_owned();
        let Signature { name, example, syntax, .. } = self.signatures[old];
        self.ops[op].signature = self.intern_signature(op, &mut key, name, example, syntax);
    }
    /// Updates the signature of `op` after attribute `name` has been set to `value`. Ops that
    /// differ in their channel id alone keep one signature.
    pub(super) fn resign_with_attr(&mut self, op: OpId, name: &str, value: &str) {
        let Some(old) = self.ops[op].signature.get().filter(|_| name != "channel_handle") else {
            return;
        };
        let stem = self.signatures.key_without_types(old);
        let mut key = stem.to_owned();
        write_attr(name, value, &mut key);
        if key.len() > stem.len() {
            let Signature { name, syntax, .. } = self.signatures[old];
            self.ops[op].signature = self.intern_signature(op, &mut key, name, op, syntax);
        }
    }
    /// Updates `op` after the types of its operands or results have changed: its signature and print flags.
    pub fn update_types(&mut self, op: OpId) {
        self.resign_op(op);
        self.printing.flags[op].set(OpFlags::TYPES_CHANGED);
    }
    /// Updates `ops` as [`Program::update_types`] does; each distinct change of a signature is computed once.
    pub fn update_types_of(&mut self, ops: &[OpId]) {
        let mut known: FxHashMap<Vec<u32>, SignatureId> = FxHashMap::default();
        let mut change: Vec<u32> = Vec::new();
        for &op in ops {
            self.printing.flags[op].set(OpFlags::TYPES_CHANGED);
            let Some(old) = self.ops[op].signature.get() else { continue };
            change.clear();
            change.push(old.index() as u32);
            let operands = self.op_operands(op).iter().map(|slot| slot.value);
            let types = operands.chain(self.op_results(op)).map(|value| self.values[value].ty);
            change.extend(types.map(|ty| ty.index() as u32));
            if let Some(&new) = known.get(&change) {
                self.ops[op].signature = new;
                continue;
            }
            self.resign_op(op);
            known.insert(change.clone(), self.ops[op].signature);
        }
    }
    /// Updates `op`, which had the signature of `first`, as [`Program::update_types`] does. `first`
    /// is updated already; if `op` has the same types, it gets the signature of `first`.
    pub fn update_types_like(&mut self, first: OpId, op: OpId) {
        if self.have_equal_types(first, op) {
            self.ops[op].signature = self.ops[first].signature;
            self.printing.flags[op].set(OpFlags::TYPES_CHANGED);
        } else {
            self.update_types(op);
        }
    }
    /// Whether operands and results of two ops have the same types.
    fn have_equal_types(&self, first: OpId, second: OpId) -> bool {
        let (one, two) = (&self.ops[first], &self.ops[second]);
        let type_of_slot = |first: UseId, index: usize| {
            let slot = &self.operands[UseId::from_index(first.index() + index)];
            self.values[slot.value].ty
        };
        let type_of_result = |first: ValueId, index: usize| {
            self.values[ValueId::from_index(first.index() + index)].ty
        };
        (one.num_operands, one.num_results) == (two.num_operands, two.num_results)
            && (0..one.num_operands as usize).all(|index| {
                type_of_slot(one.first_operand, index) == type_of_slot(two.first_operand, index)
            })
            && (0..one.num_results as usize).all(|index| {
                type_of_result(one.first_result, index) == type_of_result(two.first_result, index)
            })
    }
    /// Computes the signature of `op`, which a pass has made.
    pub fn sign_op(&mut self, op: OpId) {
        let name = self.ops[op].name;
        let mut key = self.strings.get(name).to_owned();
        for attr in self.op_attrs(op) {
            write_attr(self.strings.get(attr.name), self.text.get(attr.value), &mut key);
        }
        self.ops[op].signature = self.intern_signature(op, &mut key, name, op, Span::EMPTY);
    }
    fn intern_signature(
        &mut self,
        op: OpId,
        key: &mut String,
        name: StrId,
        example: OpId,
        syntax: Span,
    ) -> SignatureId {
        let type_of = |value: ValueId| self.values[value].ty;
        let operand_types: Box<[TypeId]> =
            self.op_operands(op).iter().map(|slot| type_of(slot.value)).collect();
        let result_types: Box<[TypeId]> = self.op_results(op).map(type_of).collect();
        let stem_len = key.len() as u32;
        self.write_types(&operand_types, &result_types, key);
        let make = || Signature { name, example, syntax, stem_len, operand_types, result_types };
        self.signatures.intern(key, make)
    }
}

/// Gives equal signatures equal ids.
#[derive(Clone, Debug, Default)]
pub struct SignatureTable {
    signatures: IdVec<SignatureId, Signature>,
    /// The keys, the text that rules depend on: the `i`-th string is that of the `i`-th signature.
    /// They are shared with the caches that have adopted them; a write copies them first.
    keys: Arc<Interner>,
}

impl SignatureTable {
    /// The id of the signature whose text is `key`; `make` is called if it was never seen.
    pub fn intern(&mut self, key: &str, make: impl FnOnce() -> Signature) -> SignatureId {
        let id = SignatureId::from_index(Arc::make_mut(&mut self.keys).intern(key).index());
        if id == self.signatures.next_id() {
            self.signatures.push(make());
        }
        id
    }
    /// Makes space for this many signatures, whose keys are this long together.
    pub fn reserve(&mut self, count: usize, bytes: usize) {
        self.signatures.reserve(count);
        Arc::make_mut(&mut self.keys).reserve(count, bytes);
    }
    /// The key of a signature. Signatures of two programs with equal keys are equal if both programs write
    /// types and attributes without aliases.
    pub fn key(&self, id: SignatureId) -> &str {
        self.keys.get(StrId::from_index(id.index()))
    }
    /// The text of a signature without its types: equal for ops that differ in their types alone.
    #[inline]
    pub fn key_without_types(&self, id: SignatureId) -> &str {
        &self.key(id)[..self.signatures[id].stem_len as usize]
    }
    /// All keys: the `i`-th string is that of the `i`-th signature.
    pub(super) const fn keys(&self) -> &Arc<Interner> {
        &self.keys
    }
    /// How many different signatures there are.
    pub fn len(&self) -> usize {
        self.signatures.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.signatures.is_empty()
    }
    /// All ids in order of first appearance.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = SignatureId> + use<> {
        self.signatures.ids()
    }
}

impl std::ops::Index<SignatureId> for SignatureTable {
    type Output = Signature;
    fn index(&self, id: SignatureId) -> &Signature {
        &self.signatures[id]
    }
}
