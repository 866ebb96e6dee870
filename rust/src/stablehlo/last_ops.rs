//! A cache of the attributes read last for each op name.
//!
//! Ops of one name mostly differ in their types alone. What stands between name and types of an op in its
//! syntax is compared with that of the last op of that name, apart from SSA names: by the keys of their
//! signatures.

use super::attributes::Attributes;
use super::definition::Definition;
use crate::index::{Id, OpId, SignatureId};
use crate::ir::Program;

/// For each op name the key without types and the attributes of the last op that was read.
#[derive(Default)]
pub struct LastAttributes<'p> {
    by_name: Vec<Option<(&'p str, Attributes<'p>)>>,
}

impl<'p> LastAttributes<'p> {
    /// The attributes of `op` of `program` that `definition` may use.
    pub fn of(
        &mut self,
        program: &'p Program,
        op: OpId,
        definition: &Definition,
    ) -> Attributes<'p> {
        let has_dictionary = !program.op_attrs(op).is_empty();
        if definition.attributes.is_empty() && !has_dictionary {
            return Attributes::default();
        }
        let has_syntax = |id: &SignatureId| !program.signatures()[*id].syntax.is_empty();
        let Some(id) = program.signature(op).get().filter(|id| !has_dictionary && has_syntax(id))
        else {
            return Attributes::of(program, op);
        };
        let key = program.signatures().key_without_types(id);
        let name = program.op_name_id(op).index();
        if self.by_name.len() <= name {
            self.by_name.resize(name + 1, None);
        }
        let last = &mut self.by_name[name];
        match last {
            Some((other, attributes)) if *other == key => attributes.clone(),
            _ => {
                let attributes = Attributes::of(program, op);
                *last = Some((key, attributes.clone()));
                attributes
            }
        }
    }
}
