//! The text of types of tensors on a mesh of a topology:
//! `!mpmd.mesh_tensor<"m1", tensor<8xf32>, sharding=<@mesh, [{"x"}]>>`.

use crate::mlir::cursor::Cursor;

/// The name of the type: with its dialect, and inside `!mpmd<mesh_tensor<...>>`.
const NAMES: [&str; 2] = ["!mpmd.mesh_tensor", "mesh_tensor"];

/// The part of `text`, a type, after its name, if it is such a type.
pub(super) fn body(text: &str) -> Option<&str> {
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

/// `text`, an attribute, with white space only after commas; strings are unchanged.
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
