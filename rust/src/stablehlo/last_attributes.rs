//! A cache of the attributes read last for each op name.
//!
//! Ops of one name mostly differ in their types alone. The text between name and types of an op in custom
//! syntax is compared with that of the last op of that name, apart from SSA names.

use super::attributes::Attributes;
use super::definition::Definition;
use crate::index::{Id, OpId};
use crate::ir::Program;
use memchr::memchr;

/// For each op name the custom syntax and the attributes of the last op that was read.
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
        let Some(syntax) = syntax(program, op).filter(|_| !has_dictionary) else {
            return Attributes::of(program, op);
        };
        let name = program.op_name_id(op).index();
        if self.by_name.len() <= name {
            self.by_name.resize(name + 1, None);
        }
        let last = &mut self.by_name[name];
        match last {
            Some((other, attributes)) if are_alike(other, syntax) => attributes.clone(),
            _ => {
                let attributes = Attributes::of(program, op);
                *last = Some((syntax, attributes.clone()));
                attributes
            }
        }
    }
}

/// The text of `op` from its name to its types, if it is the first op with its signature.
fn syntax(program: &Program, op: OpId) -> Option<&str> {
    let signature = &program.signatures()[program.signature(op).get()?];
    (signature.example == op && !signature.syntax.is_empty())
        .then(|| program.text().get(signature.syntax))
}

/// Whether two texts differ only in SSA names.
fn are_alike(mut a: &str, mut b: &str) -> bool {
    while let Some(at) = memchr(b'%', a.as_bytes()) {
        if b.as_bytes().get(..=at) != Some(&a.as_bytes()[..=at]) {
            return false;
        }
        (a, b) = (after_name(&a[at + 1..]), after_name(&b[at + 1..]));
    }
    a == b
}

fn after_name(text: &str) -> &str {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_$.-#".contains(&byte);
    &text[text.bytes().position(|byte| !is_name(byte)).unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::are_alike;

    #[test]
    fn names_of_values_do_not_matter() {
        assert!(are_alike("%0, %c, low = [1]", "%arg0#1, %x, low = [1]"));
        assert!(are_alike("", ""));
        assert!(!are_alike("%0, %c, low = [1]", "%0, %c, low = [2]"));
        assert!(!are_alike("%0, %c", "%0, %c, %d"));
        assert!(!are_alike("%0, low", "low, %0"));
        assert!(!are_alike("%0", "@f"));
    }
}
