//! A cache of what was checked last for each op name and syntax.
//!
//! Ops of one name mostly differ in their types alone, and these in sizes alone. What stands between name and types of
//! an op in its syntax is compared with that of the last ops of that name, apart from SSA names: by the keys of their
//! signatures.

use super::attributes::Attributes;
use super::definition::Definition;
use super::read_types::Outline;
use crate::index::{Id, OpId, SignatureId};
use crate::inline_list::InlineList;
use crate::ir::Program;

/// An op that was checked.
#[derive(Default)]
pub struct LastOp<'p> {
    /// The key of its signature without types; empty if the definition has no attributes.
    key: &'p str,
    /// Its attributes.
    pub attributes: Attributes<'p>,
    /// How many operands and regions it has.
    counts: [usize; 2],
    /// The outlines of the types of its operands and results; empty if it was not found valid.
    outlines: InlineList<Outline, 4>,
}

impl<'p> LastOp<'p> {
    /// An op with these attributes of which nothing else is known.
    pub fn new(attributes: Attributes<'p>) -> Self {
        Self { attributes, ..Self::default() }
    }
    /// Whether it was found valid and has this many operands and regions, and operands and results together.
    #[inline]
    pub fn is_valid(&self, counts: [usize; 2], num_values: usize) -> bool {
        !self.outlines.is_empty() && self.counts == counts && self.outlines.len() == num_values
    }
    /// The outline of the type of the operand or result at `index`, operands first.
    #[inline]
    pub fn outline(&self, index: usize) -> Outline {
        self.outlines[index]
    }
    /// Records that an op with this many operands and regions and types with these outlines is valid.
    pub fn set_valid(&mut self, counts: [usize; 2], outlines: impl Iterator<Item = Outline>) {
        self.counts = counts;
        self.outlines = outlines.collect();
    }
}

/// The last ops of one name.
#[derive(Default)]
struct Recent<'p> {
    last: LastOp<'p>,
    /// The last op of each of some other keys.
    others: Vec<LastOp<'p>>,
}

/// The most other keys of one name.
const MAX_OTHERS: usize = 16;

impl<'p> Recent<'p> {
    /// Makes the last op the one with `key`; whether there is one.
    fn recall(&mut self, key: &str) -> bool {
        let found = self.others.iter_mut().find(|other| other.key == key);
        found.map(|other| std::mem::swap(other, &mut self.last)).is_some()
    }
    /// Makes `op`, whose key is new, the last one.
    fn add(&mut self, op: LastOp<'p>) {
        let before = std::mem::replace(&mut self.last, op);
        if !before.key.is_empty() && self.others.len() < MAX_OTHERS {
            self.others.push(before);
        }
    }
}

/// The last ops of each name.
#[derive(Default)]
pub struct LastOps<'p> {
    by_name: Vec<Recent<'p>>,
}

impl<'p> LastOps<'p> {
    /// The last op of the name and syntax of `op`, with the attributes of `op` of which `definition` knows; `None` if the
    /// signature of `op` does not have these, or not which of them are properties.
    pub fn of(
        &mut self,
        program: &'p Program,
        op: OpId,
        definition: &Definition,
    ) -> Option<&mut LastOp<'p>> {
        let has_attributes = !definition.attributes.is_empty();
        let has_dictionary = !program.op_attrs(op).is_empty();
        let mut key = "";
        if has_attributes || has_dictionary {
            let has_syntax = |id: &SignatureId| !program.signatures()[*id].syntax.is_empty();
            let signature = program.signature(op).get().filter(has_syntax)?;
            let stem = program.signatures().key_without_types(signature);
            if has_dictionary && !is_custom(stem, program.op_name(op)) {
                return None;
            }
            key = if has_attributes { stem } else { key };
        }
        let name = program.op_name_id(op).index();
        if self.by_name.len() <= name {
            self.by_name.resize_with(name + 1, Recent::default);
        }
        let recent = &mut self.by_name[name];
        if recent.last.key != key && !recent.recall(key) {
            let attributes =
                if has_attributes { Attributes::of(program, op) } else { Attributes::default() };
            recent.add(LastOp { key, ..LastOp::new(attributes) });
        }
        Some(&mut recent.last)
    }
}

/// Whether `stem`, the key without types of a signature, is that of an op called `name` in custom syntax, which has no
/// properties apart from its attributes: its text comes after the name.
fn is_custom(stem: &str, name: &str) -> bool {
    stem.as_bytes().get(name.len()).is_some_and(|&byte| byte != b'\0')
}
