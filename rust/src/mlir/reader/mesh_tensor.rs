//! Types of tensors on a mesh of a topology: `!mpmd.mesh_tensor<"m1", tensor<8xf32>, sharding=<@mesh, [{"x"}]>>`.

use super::types::NewType;
use crate::error::Result;
use crate::index::TypeId;
use crate::ir::Type;
use crate::mlir::cursor::{syntax, Cursor};
use crate::mlir::grammar::{skip_attribute, skip_type};

/// The name that the type has behind the `!`, and the one behind its dialect in `!mpmd<mesh_tensor<...>>`.
const NAMES: [&str; 2] = ["!mpmd.mesh_tensor", "mesh_tensor"];

/// The part of `text`, a type, behind its name, if it is such a type.
fn body(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(NAMES[0]).or_else(|| {
        let inner = text.strip_prefix("!mpmd")?.trim_start().strip_prefix('<')?;
        inner.trim_start().strip_prefix(NAMES[1])
    })?;
    rest.trim_start().starts_with('<').then_some(rest)
}

/// Whether `text` is the type of a tensor on a mesh.
pub(super) fn is_mesh_tensor(text: &str) -> bool {
    body(text).is_some()
}

impl<'a> NewType<'_, 'a> {
    /// The type with the text `text`, at offset `start`, whose syntax is sound.
    pub(super) fn mesh_tensor(
        &mut self,
        text: &'a str,
        start: usize,
        depth: usize,
    ) -> Result<TypeId> {
        let skipped = text.len() - body(text).map_or(0, str::len);
        let mut cursor = Cursor::new(self.text, start + skipped);
        cursor.expect(b'<')?;
        let mesh = self.attribute(&mut cursor)?;
        // The name is kept without its type.
        let mesh = mesh.rfind('"').map_or(&*mesh, |end| &mesh[..=end]);
        let mut printed = format!("!mpmd.mesh_tensor<{mesh}, ");
        cursor.expect(b',')?;
        cursor.skip_space();
        let at = cursor.pos;
        skip_type(&mut cursor)?;
        let tensor = self.type_of(cursor.since(at), at, depth + 1)?;
        let Type::RankedTensor { shape, .. } = self.program.types()[tensor].clone() else {
            return Err(syntax(cursor.span_since(at), "expected a tensor of known rank").into());
        };
        printed.push_str(self.program.type_text(tensor));
        while cursor.eat(b',') {
            let key = if cursor.eat_keyword("sharding") { "sharding" } else { "memory_kind" };
            if key == "memory_kind" {
                cursor.expect_keyword(key)?;
            }
            cursor.expect(b'=')?;
            let value = self.attribute(&mut cursor)?;
            let value = value.strip_prefix("#sdy.sharding").unwrap_or(&value);
            printed.push_str(&format!(", {key}={value}"));
        }
        printed.push('>');
        let text = self.program.intern(&printed);
        Ok(self.program.intern_type(Type::MeshTensor { shape, tensor, text }, &printed))
    }
    /// The attribute at `cursor`, or what it is an alias of, as MLIR prints it.
    fn attribute(&self, cursor: &mut Cursor<'a>) -> Result<String> {
        cursor.skip_space();
        let start = cursor.pos;
        if cursor.peek() == b'<' {
            cursor.skip_balanced()?;
        } else {
            skip_attribute(cursor)?;
        }
        Ok(respaced(self.program.resolved_alias(cursor.since(start))))
    }
}

/// `text`, an attribute, with white space behind commas and nowhere else, strings apart.
pub(super) fn respaced(text: &str) -> String {
    let (mut found, mut cursor) = (String::with_capacity(text.len()), Cursor::new(text, 0));
    loop {
        cursor.skip_space();
        let start = cursor.pos;
        if start >= text.len() {
            return found;
        }
        if cursor.peek() != b'"' || cursor.string().is_err() {
            cursor.pos = start + text[start..].chars().next().map_or(1, char::len_utf8);
        }
        found.push_str(cursor.since(start));
        if found.ends_with(',') {
            found.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_are_those_that_mlir_prints() {
        let text = "< @mesh,[{\"a, b\" , ?},\n{}] > // why\n";
        assert_eq!(respaced(text), "<@mesh, [{\"a, b\", ?}, {}]>");
    }
    #[test]
    fn both_spellings() {
        assert!(is_mesh_tensor("!mpmd.mesh_tensor<\"m\", tensor<4xf32>>"));
        assert!(is_mesh_tensor("!mpmd< mesh_tensor<\"m\", tensor<4xf32>>>"));
        assert!(!is_mesh_tensor("!mpmd.mesh_tensor_of<\"m\">"));
        assert!(!is_mesh_tensor("tensor<4xf32, !mpmd.mesh_tensor<\"m\", tensor<4xf32>>>"));
    }
}
