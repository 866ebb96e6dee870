//! Text of axis refs and of lists of them: `"x"`, `"x":(2)4`, `{"x", "y":(1)2}`, `[{"x"}, {}]`,
//! `[{"x"}: 0->1]`, and manual axes `{"x", "y"}`.
//!
//! Axis refs hold axes by their place in the mesh, so reading them takes the mesh.

use super::cursor::{write_string, Cursor};
use crate::axis::{AxisRef, SubAxis};
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::mesh::Mesh;
use crate::suggest;
use std::fmt::Write as _;

/// Reads axis refs of one mesh, and gathers complaints about axes that it does not have.
pub(super) struct AxisReader<'m> {
    /// The mesh.
    pub mesh: &'m Mesh,
    /// Complaints so far.
    pub problems: Vec<Diagnostic>,
}

impl<'m> AxisReader<'m> {
    /// A reader for axes of `mesh`.
    pub fn new(mesh: &'m Mesh) -> Self {
        Self { mesh, problems: Vec::new() }
    }
    /// Reads an axis ref; `None` if the mesh does not have the axis.
    pub fn axis_ref(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<(AxisRef, Span)>> {
        let start = cursor.position();
        let (name, name_span) = cursor.string()?;
        let sub = read_sub_axis(cursor)?;
        let Some(axis) = self.mesh.axis_by_name(&name) else {
            self.problems.push(unknown_axis(&name, self.mesh).at(name_span));
            return Ok(None);
        };
        Ok(Some((AxisRef { axis, sub }, cursor.span_from(start))))
    }
    /// Reads axis refs up to `}`; axes that the mesh does not have are left out.
    pub fn list(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<(AxisRef, Span)>> {
        let axes = cursor.list("}", |cursor| self.axis_ref(cursor))?;
        Ok(axes.into_iter().flatten().collect())
    }
    /// Reads `{...}`, without spans.
    fn braced(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<AxisRef>> {
        let wrapping = cursor.open("axis_ref_list");
        cursor.expect("{")?;
        let axes = self.list(cursor)?.into_iter().map(|(axis, _)| axis).collect();
        cursor.close(wrapping)?;
        Ok(axes)
    }
}

/// Reads `:(2)4` if it is there.
fn read_sub_axis(cursor: &mut Cursor<'_>) -> Result<Option<SubAxis>> {
    if !cursor.eat(":") {
        return Ok(None);
    }
    cursor.expect("(")?;
    let (pre_size, _) = cursor.integer()?;
    cursor.expect(")")?;
    let (size, _) = cursor.integer()?;
    Ok(Some(SubAxis { pre_size, size }))
}

/// Parses an axis ref without a mesh to look it up in: its name, and which part of it.
pub fn parse_free_axis(text: &str, base: u32) -> Result<(String, Option<SubAxis>)> {
    let mut cursor = Cursor::new(text, base);
    let (name, _) = cursor.string()?;
    let sub = read_sub_axis(&mut cursor)?;
    cursor.finish()?;
    Ok((name, sub))
}

/// The complaint that `mesh` has no axis called `name`.
pub fn unknown_axis(name: &str, mesh: &Mesh) -> Diagnostic {
    let names = mesh.axes.iter().map(|axis| &*axis.name);
    let mut diagnostic = Diagnostic::new(Code::UnknownAxis, format!("unknown axis \"{name}\""));
    diagnostic.hint = suggest::hint(name, names, |name| format!("\"{name}\""));
    diagnostic
}

/// Parses the whole of `text` with `read`.
fn parse_with<T>(
    text: &str,
    base: u32,
    mesh: &Mesh,
    read: impl Fn(&mut AxisReader<'_>, &mut Cursor<'_>) -> Result<T>,
) -> Result<T> {
    let mut cursor = Cursor::new(text, base);
    let mut reader = AxisReader::new(mesh);
    let parsed = read(&mut reader, &mut cursor)?;
    cursor.finish()?;
    Error::check(reader.problems)?;
    Ok(parsed)
}

/// Parses a list of axis refs, `{"x", "y":(1)2}`, as of `sdy.all_reduce`.
pub fn parse_axis_list(text: &str, base: u32, mesh: &Mesh) -> Result<Vec<AxisRef>> {
    parse_with(text, base, mesh, |reader, cursor| {
        let axes = reader.braced(cursor)?;
        Ok(axes)
    })
}

/// Parses a list of axis refs for each dim, `[{"x"}, {}]`, as of `sdy.all_gather`.
pub fn parse_axes_per_dim(text: &str, base: u32, mesh: &Mesh) -> Result<Vec<Vec<AxisRef>>> {
    parse_with(text, base, mesh, |reader, cursor| {
        let wrapping = cursor.open("list_of_axis_ref_lists");
        cursor.expect("[")?;
        let lists = cursor.list("]", |cursor| reader.braced(cursor))?;
        cursor.close(wrapping)?;
        Ok(lists)
    })
}

/// Axes, source dim and target dim of one parameter of an `sdy.all_to_all`.
pub type AllToAllParam = (Vec<AxisRef>, i64, i64);

/// Parses the parameters of an `sdy.all_to_all`, `[{"x"}: 0->2, {"y"}: 1->3]`.
pub fn parse_all_to_all(text: &str, base: u32, mesh: &Mesh) -> Result<Vec<AllToAllParam>> {
    parse_with(text, base, mesh, |reader, cursor| {
        let wrapping = cursor.open("all_to_all_param_list");
        cursor.expect("[")?;
        let params = cursor.list("]", |cursor| {
            cursor.expect("{")?;
            if cursor.peek("}") {
                return Err(cursor.expected("an axis"));
            }
            let axes = reader.list(cursor)?.into_iter().map(|(axis, _)| axis).collect();
            cursor.expect(":")?;
            let (source, _) = cursor.integer()?;
            cursor.expect("->")?;
            let (target, _) = cursor.integer()?;
            Ok((axes, source, target))
        })?;
        cursor.close(wrapping)?;
        Ok(params)
    })
}

/// Parses the names of manual axes, `{"x", "y"}`.
pub fn parse_manual_axes(text: &str, base: u32) -> Result<Vec<String>> {
    let mut cursor = Cursor::new(text, base);
    let wrapping = cursor.open("manual_axes");
    cursor.expect("{")?;
    let names = cursor.list("}", |cursor| cursor.string().map(|(name, _)| name))?;
    cursor.close(wrapping)?;
    cursor.finish()?;
    Ok(names)
}

/// Appends `"x"` or `"x":(2)4`.
pub fn write_axis(out: &mut String, axis: AxisRef, mesh: &Mesh) {
    write_free_axis(out, mesh.axis_name(axis.axis), axis.sub);
}

/// Appends `"x"` or `"x":(2)4` for an axis without a mesh.
pub fn write_free_axis(out: &mut String, name: &str, sub: Option<SubAxis>) {
    write_string(out, name);
    if let Some(sub) = sub {
        let _ = write!(out, ":({}){}", sub.pre_size, sub.size);
    }
}

/// Appends axis refs separated by commas.
pub fn write_axes(out: &mut String, axes: &[AxisRef], mesh: &Mesh) {
    for (i, axis) in axes.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        write_axis(out, *axis, mesh);
    }
}

/// Appends `{"x", "y":(1)2}`.
pub fn write_axis_list(out: &mut String, axes: &[AxisRef], mesh: &Mesh) {
    out.push('{');
    write_axes(out, axes, mesh);
    out.push('}');
}

/// Appends `[{"x"}, {}]`.
pub fn write_axes_per_dim(out: &mut String, lists: &[Vec<AxisRef>], mesh: &Mesh) {
    out.push('[');
    for (i, axes) in lists.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        write_axis_list(out, axes, mesh);
    }
    out.push(']');
}

/// Appends `[{"x"}: 0->2]`.
pub fn write_all_to_all(out: &mut String, params: &[AllToAllParam], mesh: &Mesh) {
    out.push('[');
    for (i, (axes, source, target)) in params.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        write_axis_list(out, axes, mesh);
        let _ = write!(out, ": {source}->{target}");
    }
    out.push(']');
}

/// Appends `{"x", "y"}` for names of manual axes.
pub fn write_manual_axes<'a>(out: &mut String, names: impl IntoIterator<Item = &'a str>) {
    out.push('{');
    for (i, name) in names.into_iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        write_string(out, name);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::parse_mesh;

    #[test]
    fn lists_print_as_they_are_parsed() {
        let mesh = parse_mesh(r#"<["x"=8, "y"=4]>"#, 0).unwrap();
        for text in ["[]", "[{}, {\"x\":(2)4, \"y\"}]"] {
            let mut out = String::new();
            write_axes_per_dim(&mut out, &parse_axes_per_dim(text, 0, &mesh).unwrap(), &mesh);
            assert_eq!(out, text);
        }
        let text = r#"[{"x"}: 0->2, {"y":(1)2}: 1->3]"#;
        let mut out = String::new();
        write_all_to_all(&mut out, &parse_all_to_all(text, 0, &mesh).unwrap(), &mesh);
        assert_eq!(out, text);
        let axes = parse_axis_list(r#"#sdy<axis_ref_list{"y"}>"#, 0, &mesh).unwrap();
        assert_eq!(axes, [AxisRef::full(mesh.axis_by_name("y").unwrap())]);
        let mut out = String::new();
        let names = parse_manual_axes(r#"#sdy<manual_axes{"x", "y"}>"#, 0).unwrap();
        write_manual_axes(&mut out, names.iter().map(String::as_str));
        assert_eq!(out, r#"{"x", "y"}"#);
    }

    #[test]
    fn unknown_axes_are_all_reported() {
        let mesh = parse_mesh(r#"<["data"=8, "y"=4]>"#, 0).unwrap();
        let error = parse_axis_list(r#"{"dta", "y", "q"}"#, 5, &mesh).unwrap_err();
        let found: Vec<_> =
            error.diagnostics.iter().map(|d| (d.span.unwrap(), d.hint.as_deref())).collect();
        assert_eq!(
            found,
            [
                (Span::new(6, 11), Some("did you mean \"data\"?")),
                (Span::new(18, 21), Some("did you mean \"y\"?")),
            ]
        );
    }
}
