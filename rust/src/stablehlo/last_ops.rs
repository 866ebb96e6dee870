//! A cache within a program: the last op that was verified for each op name and each text of
//! attributes.
//!
//! Most ops of one name differ only in their types, and most of these only in sizes. The custom
//! syntax between an op's name and its types is compared with that of the last ops of the same
//! name, without SSA names, by the keys of their signatures without types.

use super::attributes::Attributes;
use super::definition::Definition;
use super::read_types::Outline;
use crate::index::OpId;
use crate::inline_list::InlineList;
use crate::ir::Program;

/// An op that was checked.
#[derive(Default)]
pub struct LastOp<'p> {
    /// The key of its signature without types; empty if the definition has no attributes.
    key: &'p str,
    /// Whether it is in generic form, with all of its attributes as properties.
    is_generic: bool,
    /// Its attributes.
    pub attributes: Attributes<'p>,
    /// Whether it was found valid.
    pub is_valid: bool,
}

impl<'p> LastOp<'p> {
    /// An op with these attributes, which was not checked yet.
    pub fn new(attributes: Attributes<'p>) -> Self {
        Self { attributes, ..Self::default() }
    }
}

/// The types of an op without the sizes of dims.
#[derive(Default)]
pub struct LastTypes {
    /// The numbers of operands and regions.
    counts: [usize; 2],
    /// The outlines of the types of its operands and results; empty if there is no op yet.
    outlines: InlineList<Outline, 4>,
}

impl LastTypes {
    /// Whether an op has these numbers of operands and regions, and these outlines, operands first.
    #[inline]
    pub fn are(&self, counts: [usize; 2], outlines: &[Outline]) -> bool {
        !self.outlines.is_empty() && self.counts == counts && *self.outlines == *outlines
    }
    /// The types of an op with these numbers of operands and regions.
    pub fn new(counts: [usize; 2], outlines: &[Outline]) -> Self {
        Self { counts, outlines: InlineList::of(outlines) }
    }
}

/// The last ops of one name.
#[derive(Default)]
pub struct Recent<'p> {
    /// The types of the last one that was found valid.
    pub types: LastTypes,
    last: LastOp<'p>,
    /// The last op for each of some other keys.
    others: Vec<LastOp<'p>>,
}

/// The most other keys for one name.
const MAX_OTHERS: usize = 16;

impl<'p> Recent<'p> {
    /// Makes the op with `key` and this form the last op; returns whether there is one.
    fn recall(&mut self, key: &str, is_generic: bool) -> bool {
        let is_alike = |other: &&mut LastOp<'_>| other.key == key && other.is_generic == is_generic;
        let found = self.others.iter_mut().find(is_alike);
        found.map(|other| std::mem::swap(other, &mut self.last)).is_some()
    }
    /// Makes `op`, whose key is new, the last one.
    fn add(&mut self, op: LastOp<'p>) {
        let before = std::mem::replace(&mut self.last, op);
        if !before.key.is_empty() && self.others.len() < MAX_OTHERS {
            self.others.push(before);
        }
    }
    /// The last op with the same key as `op`, including the attributes that `definition` has, and
    /// the last types. `None` if the signature of `op` does not have its attributes, or does not
    /// tell which of them are properties.
    pub fn of(
        &mut self,
        program: &'p Program,
        op: OpId,
        definition: &Definition,
    ) -> Option<(&mut LastOp<'p>, &mut LastTypes)> {
        let has_attributes = !definition.attributes.is_empty();
        let has_dictionary = !program.op_attrs(op).is_empty();
        let (mut key, mut is_generic) = ("", false);
        if has_attributes || has_dictionary {
            let signature = program.signature(op).get()?;
            is_generic = program.signatures()[signature].syntax.is_empty();
            let stem = program.signatures().key_without_types(signature);
            let is_told = if is_generic {
                has_attributes && has_only_properties(program, op)
            } else {
                !has_dictionary || is_custom(stem, program.op_name(op))
            };
            if !is_told {
                return None;
            }
            key = if has_attributes { stem } else { key };
        }
        let is_last = self.last.key == key && self.last.is_generic == is_generic;
        if !is_last && !self.recall(key, is_generic) {
            let attributes =
                if has_attributes { Attributes::of(program, op) } else { Attributes::default() };
            self.add(LastOp { key, is_generic, ..LastOp::new(attributes) });
        }
        Some((&mut self.last, &mut self.types))
    }
}

/// Whether all attributes of `op` are properties, `<{...}>`, without a dialect in their names.
fn has_only_properties(program: &Program, op: OpId) -> bool {
    let Some(outside) = program.op_dict_span(op) else { return false };
    program.op_attrs(op).iter().all(|attr| {
        let is_outside = outside.start <= attr.value.start && attr.value.end <= outside.end;
        !is_outside && !program.str(attr.name).contains('.')
    })
}

/// Whether `stem`, the key without types of a signature, is that of an op called `name` in custom
/// syntax: its text follows the name. Such an op has no properties besides its attributes.
fn is_custom(stem: &str, name: &str) -> bool {
    stem.as_bytes().get(name.len()).is_some_and(|&byte| byte != b'\0')
}
