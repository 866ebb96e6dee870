//! Signatures: everything that the sharding rule of an op may depend on.
//!
//! Two ops have the same signature if they have the same name, the same text but for SSA names,
//! discardable attributes and locations, the same operand types and the same result types. A
//! 96-layer model has a few hundred signatures; rules are built once for each.

use super::{Program, Span};
use crate::index::{Id, IdVec, OpId, RuleId, SignatureId, StrId, TypeId, ValueId};
use rustc_hash::FxHashMap;

/// What the rule of an op may depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The op's full name.
    pub name: StrId,
    /// The first op that has this signature: its attributes and custom syntax are every such op's.
    pub example: OpId,
    /// The example's text between its name and its first region or type signature: where its
    /// attributes stand in custom syntax.
    pub syntax: Span,
    /// Operand types.
    pub operand_types: Box<[TypeId]>,
    /// Result types.
    pub result_types: Box<[TypeId]>,
}

/// The rules of a program's signatures, as far as a rule source has made them.
///
/// A signature has at most two: an op has the second one if a certain fact holds about the ops around
/// it, which only the rule source knows; they are the same where there is no such fact.
#[derive(Clone, Debug, Default)]
pub struct SignatureRules {
    /// Tells apart the states of rule sources that may answer differently; 0 if none was asked.
    pub generation: u64,
    /// How many rows of the op table have been looked at for ops that lack a signature.
    pub signed_ops: usize,
    plain: IdVec<SignatureId, [RuleId; 2]>,
    conservative: IdVec<SignatureId, [RuleId; 2]>,
}

impl SignatureRules {
    /// Forgets all rules; those to come are of this generation.
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
    /// The same to add to.
    pub fn of_mut(&mut self, conservative: bool) -> &mut IdVec<SignatureId, [RuleId; 2]> {
        if conservative {
            &mut self.conservative
        } else {
            &mut self.plain
        }
    }
}

impl Program {
    /// Gives `op`, the types of whose values have changed, the signature that it has with them.
    pub fn resign_op(&mut self, op: OpId) {
        let Some(old) = self.ops[op].signature.get() else { return };
        let type_of = |value| self.values[value].ty;
        let operand_types: Box<[TypeId]> =
            self.op_operands(op).iter().map(|slot| type_of(slot.value)).collect();
        let result_types: Box<[TypeId]> = self.op_results(op).map(type_of).collect();
        // Neither the name of an op nor what starts the keys of `sign_op`.
        let mut key = (u32::MAX - 1).to_le_bytes().to_vec();
        key.extend_from_slice(&(old.index() as u32).to_le_bytes());
        for &ty in operand_types.iter().chain(&result_types) {
            key.extend_from_slice(&(ty.index() as u32).to_le_bytes());
        }
        let Signature { name, example, syntax, .. } = self.signatures[old];
        let make = || Signature { name, example, syntax, operand_types, result_types };
        self.ops[op].signature = self.signatures.intern(&key, make);
    }
    /// Gives `op`, which a pass has made, a signature.
    pub fn sign_op(&mut self, op: OpId) {
        // What the parser's keys start with, the name of an op, is never the absent id.
        let mut key = u32::MAX.to_le_bytes().to_vec();
        let row = &self.ops[op];
        key.extend_from_slice(self.strings.get(row.name).as_bytes());
        for attr in self.op_attrs(op) {
            key.push(0);
            key.extend_from_slice(self.strings.get(attr.name).as_bytes());
            key.push(b'=');
            key.extend_from_slice(self.text.get(attr.value).as_bytes());
        }
        key.push(1);
        let type_of = |value: ValueId| self.values[value].ty;
        let operand_types = || self.op_operands(op).iter().map(|slot| type_of(slot.value));
        let result_types = || self.op_results(op).map(type_of);
        for ty in operand_types().chain(result_types()) {
            key.extend_from_slice(&(ty.index() as u32).to_le_bytes());
        }
        key.extend_from_slice(&row.num_operands.to_le_bytes());
        let known = self.signatures.find(&key);
        self.ops[op].signature = if let Some(id) = known {
            id
        } else {
            let signature = Signature {
                name: row.name,
                example: op,
                syntax: Span::EMPTY,
                operand_types: operand_types().collect(),
                result_types: result_types().collect(),
            };
            self.signatures.intern(&key, || signature)
        };
    }
}

/// Gives equal signatures equal ids.
#[derive(Clone, Debug, Default)]
pub struct SignatureTable {
    signatures: IdVec<SignatureId, Signature>,
    ids: FxHashMap<Box<[u8]>, SignatureId>,
}

impl SignatureTable {
    /// The id of the signature whose bytes are `key`; `make` is called if it was never seen.
    pub fn intern(&mut self, key: &[u8], make: impl FnOnce() -> Signature) -> SignatureId {
        if let Some(&id) = self.ids.get(key) {
            return id;
        }
        let id = self.signatures.push(make());
        self.ids.insert(key.into(), id);
        id
    }
    /// The id of the signature whose bytes are `key`, if it was seen before.
    pub fn find(&self, key: &[u8]) -> Option<SignatureId> {
        self.ids.get(key).copied()
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
