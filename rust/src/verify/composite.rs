//! Checks `stablehlo.composite` and its decompositions.

use super::Verifier;
use crate::index::{OpId, TypeId};
use crate::mlir::op_attribute;

impl Verifier<'_> {
    /// Checks that the decomposition of `op`, a composite, is a function with the op's type.
    pub(super) fn composite(&mut self, op: OpId) {
        if let Err(message) = self.check_composite(op) {
            self.bare(op, message);
        }
    }
    fn check_composite(&self, op: OpId) -> Result<(), String> {
        let text = |name| {
            let value = op_attribute(self.program, op, name)?;
            Some(value.as_str()?.to_owned())
        };
        // If they are missing, the check against the op's definition reports it.
        let (Some(name), Some(decomposition)) = (text("name"), text("decomposition")) else {
            return Ok(());
        };
        if !is_namespaced(&name) {
            return Err(
                "name must be a valid namespaced op name, i.e. it must match the following \
                        regular expression: ^[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+$ e.g. \
                        \"my_namespace.my_op\""
                    .to_owned(),
            );
        }
        let Some(function) = self.nearest_function(op, &decomposition) else {
            return Err(format!("'{decomposition}' does not reference a valid function"));
        };
        let program = self.program;
        let operands: Vec<TypeId> =
            program.operands(op).map(|value| program.type_of(value)).collect();
        let results: Vec<TypeId> =
            program.op_results(op).map(|value| program.type_of(value)).collect();
        let args: Vec<TypeId> = program.func_args(function).iter().map(|port| port.ty).collect();
        let returned: Vec<TypeId> =
            program.func_results(function).iter().map(|port| port.ty).collect();
        self.check_side("operand", &operands, &args)?;
        self.check_side("result", &results, &returned)
    }
    fn check_side(&self, what: &str, own: &[TypeId], other: &[TypeId]) -> Result<(), String> {
        let (has, needs) = (own.len(), other.len());
        if has != needs {
            return Err(format!("has {has} {what}(s), but decomposition has {needs}"));
        }
        let text = |ty: TypeId| self.program.text().get(self.program.types().text(ty));
        match (0..has).find(|&at| own[at] != other[at]) {
            Some(at) => {
                let (own, other) = (text(own[at]), text(other[at]));
                Err(format!(
                    "{what} at index {at} has type '{own}', but decomposition has type '{other}'"
                ))
            }
            None => Ok(()),
        }
    }
}

/// Whether `name` is two or more words joined by dots.
fn is_namespaced(name: &str) -> bool {
    let Some((first, rest)) = name.split_once('.') else { return false };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    first.starts_with(|c: char| c.is_ascii_alphabetic())
        && first.bytes().all(is_word)
        && rest
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| is_word(byte) || byte == b'$'))
}

#[cfg(test)]
mod tests {
    use super::is_namespaced;

    #[test]
    fn names_of_composites() {
        for name in ["a.b", "my_dialect.op.part$1", "A1.2"] {
            assert!(is_namespaced(name), "{name}");
        }
        for name in ["a", "", ".b", "a.", "1.b", "a..b", "a b.c", "a$.b"] {
            assert!(!is_namespaced(name), "{name}");
        }
    }
}
