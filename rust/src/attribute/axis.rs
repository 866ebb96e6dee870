//! Text of axis refs and of lists of them: `"x"`, `"x":(2)4`, `{"x", "y":(1)2}`, `[{"x"}, {}]`,
//! `[{"x"}: 0->1]`, and manual axes `{"x", "y"}`.
//!
//! Axis refs refer to axes by their index in the mesh, so parsing them takes the mesh.

use super::cursor::Cursor;
use super::parameter::Parameter;
use super::quote::write_string;
use crate::axis::{AxisRef, SubAxis};
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{AxisId, Id};
use crate::mesh::Mesh;
use crate::suggest;
use rustc_hash::FxHashMap;
use std::fmt::Write as _;

/// Parses axis refs of one mesh. An axis that the mesh does not have gets an id beyond those of the
/// mesh, so that verification reports it together with all other errors.
pub(super) struct AxisReader<'m> {
    /// The mesh.
    pub mesh: &'m Mesh,
    /// The names that the mesh does not have, in the order of their ids.
    pub unknown: Vec<String>,
    unknown_ids: FxHashMap<String, AxisId>,
    /// The span of the first use of each unknown name.
    unknown_spans: Vec<Span>,
}

impl<'m> AxisReader<'m> {
    /// A reader for axes of `mesh`.
    pub fn new(mesh: &'m Mesh) -> Self {
        let unknown_ids = FxHashMap::default();
        Self { mesh, unknown: Vec::new(), unknown_ids, unknown_spans: Vec::new() }
    }
    /// Reads an axis ref.
    pub fn axis_ref(&mut self, cursor: &mut Cursor<'_>) -> Result<(AxisRef, Span)> {
        let start = cursor.position();
        let (name, span) = cursor.parameter(&NAME, Cursor::string)?;
        let sub = read_sub_axis(cursor)?;
        let axis = self.mesh.axis_by_name(&name).unwrap_or_else(|| self.unknown_id(name, span));
        Ok((AxisRef { axis, sub }, cursor.span_from(start)))
    }
    fn unknown_id(&mut self, name: String, span: Span) -> AxisId {
        let next = AxisId::from_index(self.mesh.axes.len() + self.unknown.len());
        *self.unknown_ids.entry(name).or_insert_with_key(|name| {
            self.unknown.push(name.clone());
            self.unknown_spans.push(span);
            next
        })
    }
    /// Reads one or more axis refs.
    pub fn some(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<(AxisRef, Span)>> {
        cursor.items(|cursor| self.axis_ref(cursor))
    }
    /// Reads `{...}`, without spans.
    pub fn braced(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<AxisRef>> {
        let wrapping = cursor.open("axis_ref_list");
        cursor.expect("{")?;
        let axes = if cursor.eat("}") {
            Vec::new()
        } else {
            let axes = cursor.parameter(&AXIS_REF_LIST, |cursor| self.some(cursor))?;
            cursor.expect("}")?;
            axes
        };
        cursor.close(wrapping)?;
        Ok(axes.into_iter().map(|(axis, _)| axis).collect())
    }
    /// Reads `[{...}, {...}]`.
    pub fn per_dim(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<Vec<AxisRef>>> {
        let wrapping = cursor.open("list_of_axis_ref_lists");
        let lists = bracketed(cursor, &AXIS_REF_LISTS, |cursor| self.braced(cursor))?;
        cursor.close(wrapping)?;
        Ok(lists)
    }
    /// Reads `[{"x"}: 0->2, {"y"}: 1->3]`.
    pub fn all_to_all(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<AllToAllParam>> {
        let wrapping = cursor.open("all_to_all_param_list");
        let params = bracketed(cursor, &ALL_TO_ALL_PARAMS, |cursor| read_param(cursor, self))?;
        cursor.close(wrapping)?;
        Ok(params)
    }
    /// The errors of axes that the mesh does not have.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let unknown = self.unknown.iter().zip(&self.unknown_spans);
        unknown.map(|(name, &span)| unknown_axis(name, self.mesh).at(span)).collect()
    }
}

/// Reads `[item, item]`, the value of `parameter`.
fn bracketed<T>(
    cursor: &mut Cursor<'_>,
    parameter: &Parameter,
    item: impl FnMut(&mut Cursor<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    cursor.expect("[")?;
    if cursor.eat("]") {
        return Ok(Vec::new());
    }
    let items = cursor.parameter(parameter, |cursor| cursor.items(item))?;
    cursor.expect("]")?;
    Ok(items)
}

const NAME: Parameter = Parameter::new("Sdy_AxisRef", "name", "::llvm::StringRef");
const SUB_AXIS: Parameter = Parameter::new("Sdy_AxisRef", "sub_axis_info", "SubAxisInfoAttr");
const PRE_SIZE: Parameter = Parameter::new("Sdy_SubAxisInfo", "pre_size", "int64_t");
const SIZE: Parameter = Parameter::new("Sdy_SubAxisInfo", "size", "int64_t");
const AXIS_REF_LIST: Parameter =
    Parameter::new("Sdy_AxisRefList", "value", "::llvm::ArrayRef<AxisRefAttr>");
const AXIS_REF_LISTS: Parameter =
    Parameter::new("Sdy_ListOfAxisRefLists", "value", "::llvm::ArrayRef<AxisRefListAttr>");
const ALL_TO_ALL_PARAMS: Parameter =
    Parameter::new("Sdy_AllToAllParamList", "value", "::llvm::ArrayRef<AllToAllParamAttr>");
const PARAM_AXES: Parameter =
    Parameter::new("Sdy_AllToAllParamAttr", "axes", "::llvm::ArrayRef<AxisRefAttr>");
const SRC_DIM: Parameter = Parameter::new("Sdy_AllToAllParamAttr", "src_dim", "int64_t");
const TGT_DIM: Parameter = Parameter::new("Sdy_AllToAllParamAttr", "tgt_dim", "int64_t");
const MANUAL_AXES: Parameter =
    Parameter::new("Sdy_ManualAxes", "value", "::llvm::ArrayRef<StringAttr>");

/// Reads `:(2)4` if it is next.
fn read_sub_axis(cursor: &mut Cursor<'_>) -> Result<Option<SubAxis>> {
    if !cursor.eat(":") {
        return Ok(None);
    }
    let sub = cursor.parameter(&SUB_AXIS, |cursor| {
        cursor.expect("(")?;
        let (pre_size, _) = cursor.parameter(&PRE_SIZE, Cursor::integer)?;
        cursor.expect(")")?;
        let (size, _) = cursor.parameter(&SIZE, Cursor::integer)?;
        Ok(SubAxis { pre_size, size })
    })?;
    Ok(Some(sub))
}

/// Parses an axis ref without looking it up in a mesh: its name, and the sub-axis.
pub fn parse_free_axis(text: &str, base: u32) -> Result<(String, Option<SubAxis>)> {
    let mut cursor = Cursor::new(text, base);
    let axis = read_free_axis(&mut cursor)?;
    cursor.finish()?;
    Ok(axis)
}

/// Reads an axis ref without looking it up in a mesh.
pub(super) fn read_free_axis(cursor: &mut Cursor<'_>) -> Result<(String, Option<SubAxis>)> {
    let (name, _) = cursor.parameter(&NAME, Cursor::string)?;
    Ok((name, read_sub_axis(cursor)?))
}

/// The error that `mesh` has no axis called `name`.
pub fn unknown_axis(name: &str, mesh: &Mesh) -> Diagnostic {
    let names = mesh.axes.iter().map(|axis| &*axis.name);
    let mut diagnostic =
        Diagnostic::new(Code::UnknownAxis, format!("unknown axis name: \"{name}\""));
    diagnostic.hint = suggest::hint(name, names, |name| format!("\"{name}\""))
        .or_else(|| Some("the mesh has no axes; name another one".to_owned()));
    diagnostic
}

/// Parses the whole of `text` with `read`.
fn parse_with<'m, T>(
    text: &str,
    base: u32,
    mesh: &'m Mesh,
    read: impl Fn(&mut AxisReader<'m>, &mut Cursor<'_>) -> Result<T>,
) -> Result<T> {
    let mut cursor = Cursor::new(text, base);
    let mut reader = AxisReader::new(mesh);
    let parsed = read(&mut reader, &mut cursor)?;
    cursor.finish()?;
    Error::check(reader.problems())?;
    Ok(parsed)
}

/// Parses a list of axis refs, `{"x", "y":(1)2}`, as of `sdy.all_reduce`.
pub fn parse_axis_list(text: &str, base: u32, mesh: &Mesh) -> Result<Vec<AxisRef>> {
    parse_with(text, base, mesh, AxisReader::braced)
}

/// Parses a list of axis refs for each dim, `[{"x"}, {}]`, as of `sdy.all_gather`.
pub fn parse_axes_per_dim(text: &str, base: u32, mesh: &Mesh) -> Result<Vec<Vec<AxisRef>>> {
    parse_with(text, base, mesh, AxisReader::per_dim)
}

/// Axes, source dim and target dim of one parameter of an `sdy.all_to_all`.
pub type AllToAllParam = (Vec<AxisRef>, i64, i64);

/// Parses the parameters of an `sdy.all_to_all`, `[{"x"}: 0->2, {"y"}: 1->3]`.
pub fn parse_all_to_all(text: &str, base: u32, mesh: &Mesh) -> Result<Vec<AllToAllParam>> {
    parse_with(text, base, mesh, AxisReader::all_to_all)
}

/// Reads `{"x"}: 0->2`.
fn read_param(cursor: &mut Cursor<'_>, reader: &mut AxisReader<'_>) -> Result<AllToAllParam> {
    cursor.expect("{")?;
    let axes = cursor.parameter(&PARAM_AXES, |cursor| reader.some(cursor))?;
    cursor.expect("}")?;
    cursor.expect(":")?;
    let (source, _) = cursor.parameter(&SRC_DIM, Cursor::integer)?;
    cursor.expect("->")?;
    let (target, _) = cursor.parameter(&TGT_DIM, Cursor::integer)?;
    Ok((axes.into_iter().map(|(axis, _)| axis).collect(), source, target))
}

/// Parses the names of manual axes, `{"x", "y"}`.
pub fn parse_manual_axes(text: &str, base: u32) -> Result<Vec<String>> {
    let mut cursor = Cursor::new(text, base);
    let names = read_manual_axes(&mut cursor)?;
    cursor.finish()?;
    Ok(names)
}

/// Reads `{"x", "y"}`, names of manual axes.
pub(super) fn read_manual_axes(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    let wrapping = cursor.open("manual_axes");
    cursor.expect("{")?;
    let mut names = Vec::new();
    if !cursor.eat("}") {
        names = cursor.parameter(&MANUAL_AXES, |cursor| {
            cursor.items(|cursor| {
                if cursor.peek("\"") {
                    cursor.string()
                } else {
                    Err(cursor.expected("attribute value"))
                }
            })
        })?;
        cursor.expect("}")?;
    }
    cursor.close(wrapping)?;
    Ok(names.into_iter().map(|(name, _)| name).collect())
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
