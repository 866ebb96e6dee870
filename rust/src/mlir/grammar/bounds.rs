//! Bounds of dynamic dims, `tensor<?xf32, #stablehlo.bounds<4>>`.

use super::position::Grammar;
use crate::error::{Result, Span};
use crate::mlir::cursor::{syntax, Cursor};

impl Grammar<'_, '_> {
    /// Checks the bounds in the `encoding` of a tensor of this `shape` and `element` type, if it
    /// has any.
    pub(super) fn check_bounds(
        &self,
        shape: Option<&[Option<i64>]>,
        element: Span,
        encoding: Span,
    ) -> Result<()> {
        let text = |span: Span| &self.cursor.text()[span.start as usize..span.end as usize];
        let written = text(encoding);
        let Some(bounds) = bounds(self.alias_text(written).unwrap_or(written)) else {
            return Ok(());
        };
        let shape = shape.unwrap_or_default();
        let size = |size: &Option<i64>| size.map_or("?x".to_owned(), |size| format!("{size}x"));
        let dims: String = shape.iter().map(size).collect();
        let element: String = text(element).split_whitespace().collect();
        let tensor = format!("tensor<{dims}{element}>");
        let is_static = |&dim: &usize| shape[dim].is_some() && bounds[dim].is_some();
        let (message, hint) = if bounds.len() != shape.len() {
            let (count, rank) = (bounds.len(), shape.len());
            let message = format!(
                "Bounds length is {count}, expected to be equal to rank({rank}) of the tensor '{tensor}'"
            );
            (message, "write a bound for each dim, ? for one without")
        } else if let Some(dim) = (0..shape.len()).find(is_static) {
            let message = format!(
                "Static dimension {dim} cannot have a bound, use ShapedType::kDynamic to indicate a \
                 missing bound in tensor '{tensor}'"
            );
            (message, "write ? in place of the bound")
        } else {
            return Ok(());
        };
        Err(syntax(encoding, message).with_hint(hint).into())
    }
}

/// The bounds in `text`, which is well formed; `None` if it is another attribute.
fn bounds(text: &str) -> Option<Vec<Option<i64>>> {
    let body = ["#stablehlo.", "#stablehlo<"].iter().find_map(|start| text.strip_prefix(start))?;
    let body = body.trim_start();
    let name = Cursor::new(body, 0).name();
    let rest = body[name.len()..].trim_start();
    let list = match name {
        "bounds" => rest.strip_prefix('<').and_then(|rest| rest.split_once('>')),
        "type_extensions" => rest.split_once('[').and_then(|(_, rest)| rest.split_once(']')),
        _ => return None,
    };
    let items = list.map_or("", |(list, _)| list).split(',').map(str::trim);
    let items = items.filter(|item| !item.is_empty());
    Some(items.map(|item| Cursor::new(item, 0).integer().ok()).collect())
}
