//! Text and invariants of meshes: `<["x"=2, "y"=4], device_ids=[...]>`.
//!
//! Invariants, after `MeshAttr` and `MeshAxisAttr`:
//!
//! 1. Axis sizes are at least 1, and axis names differ.
//! 2. Device ids are not negative; with axes they are a permutation of `0..n`, and not `0..n`
//!    itself (reading drops them in that case, as the reference does).
//! 3. Without axes there is at most one device id.
//! 4. The number of devices is below [`MAX_DEVICES`]. The reference has no such limit, and crashes.

use super::cursor::Cursor;
use super::parameter::Parameter;
use super::problem::{unlocated, Part, Problem};
use super::quote::write_string;
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::memory;
use crate::mesh::{Mesh, MeshAxis};
use rustc_hash::FxHashMap;
use std::fmt::Write as _;

/// One more than the largest number of devices of a mesh: it keeps products of sizes and pre-sizes
/// of axes below half of the range of `i64`.
pub const MAX_DEVICES: i64 = 1 << 62;

const AXES: Parameter = Parameter::new("Sdy_Mesh", "axes", "::llvm::ArrayRef<MeshAxisAttr>");
const DEVICE_IDS: Parameter = Parameter::new("Sdy_Mesh", "device_ids", "::llvm::ArrayRef<int64_t>");
const NAME: Parameter = Parameter::new("Sdy_MeshAxis", "name", "::llvm::StringRef");
const SIZE: Parameter = Parameter::new("Sdy_MeshAxis", "size", "int64_t");

/// The spans of the parts of a mesh.
struct MeshSpans {
    whole: Span,
    axes: Vec<Span>,
    device_ids: Span,
    each_device_id: Vec<Span>,
}

impl MeshSpans {
    fn span_of(&self, part: Part) -> Option<Span> {
        match part {
            Part::Axis(axis) => self.axes.get(axis).copied(),
            Part::DeviceIds => Some(self.device_ids),
            Part::DeviceId(index) => self.each_device_id.get(index).copied(),
            _ => Some(self.whole),
        }
    }
}

/// Parses and verifies a mesh, `#sdy.mesh<...>` or the part in angle brackets alone. `base` is the offset
/// of `text` in the program's text.
pub fn parse_mesh(text: &str, base: u32) -> Result<Mesh> {
    memory::ensure_for_text(text)?;
    let mut cursor = Cursor::new(text, base);
    let mesh = read_mesh(&mut cursor)?;
    cursor.finish()?;
    Ok(mesh)
}

/// Parses meshes by name, `{mesh = #sdy.mesh<...>, other = #sdy.mesh<...>}`.
pub fn parse_mesh_dictionary(text: &str, base: u32) -> Result<Vec<(String, Mesh)>> {
    memory::ensure_for_text(text)?;
    let mut cursor = Cursor::new(text, base);
    cursor.expect("{")?;
    let meshes = cursor.list("}", |cursor| {
        let name = match cursor.word() {
            Some((name, _)) => name.to_owned(),
            None => cursor.string()?.0,
        };
        cursor.expect("=")?;
        Ok((name, read_mesh(cursor)?))
    })?;
    cursor.finish()?;
    Ok(meshes)
}

/// Reads and verifies a mesh.
pub(super) fn read_mesh(cursor: &mut Cursor<'_>) -> Result<Mesh> {
    let wrapping = cursor.open("mesh");
    let (mut mesh, spans) = read_unverified(cursor)?;
    cursor.close(wrapping)?;
    drop_default_device_ids(&mut mesh);
    let problems = mesh_problems(&mesh).into_iter();
    let mut diagnostics: Vec<_> =
        problems.map(|problem| problem.located(|part| spans.span_of(part))).collect();
    // The reference reports an axis of size 0 as a syntax error.
    if let Some(axis) = mesh.axes.iter().position(|axis| axis.size < 1) {
        let span = spans.axes[axis];
        let failure = Diagnostic::new(Code::InvalidMesh, AXES.failure());
        diagnostics.push(failure.at(Span::new(span.end, span.end)));
    }
    Error::check(diagnostics)?;
    Ok(mesh)
}

fn read_unverified(cursor: &mut Cursor<'_>) -> Result<(Mesh, MeshSpans)> {
    let start = cursor.position();
    cursor.expect("<")?;
    cursor.expect("[")?;
    let mut axes = Vec::new();
    if !cursor.eat("]") {
        axes = cursor.parameter(&AXES, |cursor| cursor.items(read_axis))?;
        cursor.expect("]")?;
    }
    let (axes, axis_spans) = axes.into_iter().unzip();
    let mut ids = Vec::new();
    let mut ids_span = Span::EMPTY;
    if cursor.eat(",") {
        if !cursor.eat_word("device_ids") {
            return Err(cursor.expected("'device_ids'"));
        }
        cursor.expect("=")?;
        let ids_start = cursor.position();
        cursor.expect("[")?;
        ids = cursor.parameter(&DEVICE_IDS, |cursor| cursor.items(Cursor::integer))?;
        cursor.expect("]")?;
        ids_span = cursor.span_from(ids_start);
    }
    cursor.expect(">")?;
    let (device_ids, each_device_id) = ids.into_iter().unzip();
    let whole = cursor.span_from(start);
    let spans = MeshSpans { whole, axes: axis_spans, device_ids: ids_span, each_device_id };
    Ok((Mesh::new(axes, device_ids), spans))
}

/// Reads `"x"=2`.
fn read_axis(cursor: &mut Cursor<'_>) -> Result<(MeshAxis, Span)> {
    let start = cursor.position();
    let (name, _) = cursor.parameter(&NAME, Cursor::string)?;
    cursor.expect("=")?;
    let (size, _) = cursor.parameter(&SIZE, Cursor::integer)?;
    Ok((MeshAxis { name: name.into(), size }, cursor.span_from(start)))
}

/// Removes device ids that are the default order.
pub fn drop_default_device_ids(mesh: &mut Mesh) {
    let is_default = !mesh.axes.is_empty()
        && checked_num_devices(mesh) == i64::try_from(mesh.device_ids.len()).ok()
        && mesh.device_ids.iter().zip(0..).all(|(&id, expected): (_, i64)| id == expected);
    if is_default {
        mesh.device_ids.clear();
    }
}

/// The number of devices, if it is less than [`MAX_DEVICES`] and no size is below 1.
fn checked_num_devices(mesh: &Mesh) -> Option<i64> {
    let mut product = 1i64;
    for axis in &mesh.axes {
        product = product.checked_mul(axis.size).filter(|&n| (1..MAX_DEVICES).contains(&n))?;
    }
    Some(product)
}

/// Appends a mesh in the form `<["x"=2, "y"=4], device_ids=[...]>`.
pub fn write_mesh(out: &mut String, mesh: &Mesh) {
    out.push_str("<[");
    for (i, axis) in mesh.axes.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        write_string(out, &axis.name);
        let _ = write!(out, "={}", axis.size);
    }
    out.push(']');
    if !mesh.device_ids.is_empty() {
        out.push_str(", device_ids=[");
        for (i, id) in mesh.device_ids.iter().enumerate() {
            let _ = write!(out, "{}{id}", if i == 0 { "" } else { ", " });
        }
        out.push(']');
    }
    out.push('>');
}

/// All errors of `mesh`.
pub fn verify_mesh(mesh: &Mesh) -> Vec<Diagnostic> {
    unlocated(mesh_problems(mesh))
}

fn problem(part: Part, message: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidMesh, part, message)
}

/// All errors of `mesh`, by part.
pub fn mesh_problems(mesh: &Mesh) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut first_of_name: FxHashMap<&str, usize> = FxHashMap::default();
    for (i, axis) in mesh.axes.iter().enumerate() {
        if axis.size < 1 {
            let message = format!("axis size must be at least 1, got: {}", axis.size);
            let hint = format!("it is the size of \"{}\"", axis.name);
            problems.push(problem(Part::Axis(i), message).with_hint(hint));
        }
        if let Some(&first) = first_of_name.get(&*axis.name) {
            let duplicate =
                problem(Part::Axis(i), format!("duplicate axis name: \"{}\"", axis.name));
            problems.push(duplicate.with_related(Part::Axis(first), "first used here"));
        } else {
            first_of_name.insert(&axis.name, i);
        }
    }
    for (i, id) in mesh.device_ids.iter().enumerate() {
        if *id < 0 {
            let message = format!("device id must be non-negative, got: {id}");
            problems.push(problem(Part::DeviceId(i), message));
        }
    }
    let num_devices = checked_num_devices(mesh);
    if problems.is_empty() && num_devices.is_none() {
        problems.push(problem(Part::Whole, "the axis sizes multiply to 2^62 devices or more"));
    }
    if let (true, Some(num_devices)) = (problems.is_empty(), num_devices) {
        problems.extend(device_id_problem(mesh, num_devices));
    }
    problems
}

/// The error of the device ids of a mesh that is otherwise valid.
fn device_id_problem(mesh: &Mesh, num_devices: i64) -> Option<Problem> {
    const NONE: u32 = u32::MAX;
    let ids = &mesh.device_ids;
    if mesh.axes.is_empty() {
        let hint = "name the axes, or leave one device id for a maximal mesh";
        let message = "axes is empty and device_ids has more than one element";
        return (ids.len() > 1).then(|| problem(Part::DeviceIds, message).with_hint(hint));
    }
    if ids.is_empty() {
        return None;
    }
    if i64::try_from(ids.len()) != Ok(num_devices) {
        let message = format!(
            "total product of axis sizes must match total number of device ids, got: {num_devices} != {}",
            ids.len()
        );
        return Some(problem(Part::DeviceIds, message));
    }
    let not_iota = || {
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        let mut message = "sorted device ids must be iota(product(axes)), got: ".to_owned();
        for (at, id) in sorted.iter().enumerate() {
            let _ = write!(message, "{}{id}", if at == 0 { "" } else { ", " });
        }
        message
    };
    let mut place: Vec<u32> = vec![NONE; ids.len()];
    for (i, &id) in ids.iter().enumerate() {
        let slot = usize::try_from(id).ok().and_then(|id| place.get_mut(id));
        let Some(slot) = slot else {
            let hint = format!("{id} is not in 0..{num_devices}");
            return Some(problem(Part::DeviceId(i), not_iota()).with_hint(hint));
        };
        let first = std::mem::replace(slot, i as u32);
        if first != NONE {
            let duplicate = problem(Part::DeviceId(i), not_iota());
            let duplicate = duplicate.with_hint(format!("{id} appears twice"));
            return Some(duplicate.with_related(Part::DeviceId(first as usize), "first used here"));
        }
    }
    let is_sorted = ids.windows(2).all(|pair| pair[0] < pair[1]);
    is_sorted.then(|| {
        let message = "if the ordered device ids are the same as iota(product(axes)), no need to \
                       specify them for simplicity";
        problem(Part::DeviceIds, message).with_hint("leave device_ids out")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reprint(text: &str) -> String {
        let mut out = String::new();
        write_mesh(&mut out, &parse_mesh(text, 0).unwrap());
        out
    }

    #[test]
    fn meshes_print_as_they_are_parsed() {
        for text in [
            "<[]>",
            "<[], device_ids=[3]>",
            r#"<["x"=2]>"#,
            r#"<["a b"=2, "y"=1], device_ids=[1, 0]>"#,
        ] {
            assert_eq!(reprint(text), text);
            assert_eq!(reprint(&format!("#sdy.mesh{text}")), text);
        }
        assert_eq!(reprint(r#"<[ "x" = 0x2 ] , device_ids=[0,1]>"#), r#"<["x"=2]>"#);
        assert_eq!(reprint(r#"#sdy<mesh<["x"=2]>>"#), r#"<["x"=2]>"#);
    }

    #[test]
    fn every_mistake_is_found_where_it_is() {
        let errors = |text: &str| -> Vec<(String, Span)> {
            let error = parse_mesh(text, 100).unwrap_err();
            let list = error.diagnostics.into_iter();
            list.map(|d| (d.message, d.span.unwrap())).collect()
        };
        assert_eq!(
            errors(r#"<["x"=0, "x"=2], device_ids=[-1]>"#),
            [
                ("axis size must be at least 1, got: 0".into(), Span::new(102, 107)),
                ("duplicate axis name: \"x\"".into(), Span::new(109, 114)),
                ("device id must be non-negative, got: -1".into(), Span::new(129, 131)),
                (AXES.failure(), Span::new(107, 107)),
            ]
        );
        assert_eq!(
            errors("<[], device_ids=[1, 2]>")[0].0,
            "axes is empty and device_ids has more than one element"
        );
        assert_eq!(
            errors(r#"<["x"=2], device_ids=[2, 1]>"#)[0].0,
            "sorted device ids must be iota(product(axes)), got: 1, 2"
        );
        assert_eq!(
            errors(r#"<["x"=2], device_ids=[0, 1, 2]>"#)[0].0,
            "total product of axis sizes must match total number of device ids, got: 2 != 3"
        );
        let huge = r#"<["x"=2147483648, "y"=2147483648]>"#;
        assert_eq!(errors(huge)[0].0, "the axis sizes multiply to 2^62 devices or more");
        for bad in
            ["", "<", "<[", "<[]", "<[],>", "<device_ids=[0]>", "<[], device_ids=[]>", "<[]>>"]
        {
            assert_eq!(parse_mesh(bad, 0).unwrap_err().diagnostics[0].code, Code::Syntax, "{bad}");
        }
    }
}
