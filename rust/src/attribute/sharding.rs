//! Text of tensor shardings: `<@mesh, [{"x", "y":(1)2, ?}p1, {}], replicated={"z"}, unreduced={"w"}>`.
//!
//! Reading a sharding verifies all of it that does not depend on the tensor, while its text is at
//! hand to point at.

use super::axis::{write_axes, AxisReader};
use super::cursor::{write_symbol, Cursor, Wrapping};
use super::mesh::{read_mesh, write_mesh};
use super::problem::Part;
use super::sharding_rules::mesh_problems_of;
use super::MeshScope;
use crate::axis::AxisRef;
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::MeshId;
use crate::mesh::Mesh;
use crate::sharding::{DimSharding, TensorSharding};
use std::fmt::Write as _;

/// Where the parts of a sharding stand in the text.
#[derive(Clone, Debug, Default)]
struct ShardingSpans {
    whole: Span,
    dims: Vec<Span>,
    axes: Vec<Span>,
}

impl ShardingSpans {
    fn span_of(&self, part: Part) -> Option<Span> {
        match part {
            Part::Dim(dim) => self.dims.get(dim).copied(),
            Part::Axis(axis) => self.axes.get(axis).copied(),
            _ => Some(self.whole),
        }
    }
}

/// Parses and verifies a sharding, `#sdy.sharding<...>` or the part in angle brackets alone. `base`
/// is where `text` stands in the program's text.
pub fn parse_sharding(text: &str, base: u32, scope: &mut dyn MeshScope) -> Result<TensorSharding> {
    let mut cursor = Cursor::new(text, base);
    let sharding = read_sharding(&mut cursor, scope)?;
    cursor.finish()?;
    Ok(sharding)
}

/// Parses and verifies a list of shardings, `#sdy.sharding_per_value<[<...>, <...>]>` or the part in
/// square brackets alone.
pub fn parse_sharding_per_value(
    text: &str,
    base: u32,
    scope: &mut dyn MeshScope,
) -> Result<Vec<TensorSharding>> {
    let mut cursor = Cursor::new(text, base);
    let wrapping = cursor.open("sharding_per_value");
    let angled = wrapping != Wrapping::Stripped || cursor.peek("<");
    if angled {
        cursor.expect("<")?;
    }
    cursor.expect("[")?;
    let mut diagnostics = Vec::new();
    let shardings = cursor.list("]", |cursor| match read_sharding(cursor, scope) {
        Ok(sharding) => Ok(Some(sharding)),
        // The text was read to its end: go on, to report the mistakes in the others too.
        Err(error) if error.diagnostics.iter().all(|d| d.code != Code::Syntax) => {
            diagnostics.extend(error.diagnostics);
            Ok(None)
        }
        Err(error) => Err(error),
    })?;
    if angled {
        cursor.expect(">")?;
    }
    cursor.close(wrapping)?;
    cursor.finish()?;
    Error::check(diagnostics)?;
    Ok(shardings.into_iter().flatten().collect())
}

/// Reads and verifies a sharding. Unless the error is one of syntax, all of it was read.
fn read_sharding(cursor: &mut Cursor<'_>, scope: &mut dyn MeshScope) -> Result<TensorSharding> {
    if cursor.peek("#") && !cursor.peek("#sdy") {
        return read_alias(cursor, scope);
    }
    let wrapping = cursor.open("sharding");
    let start = cursor.position();
    cursor.expect("<")?;
    let (mesh, mesh_error) = read_mesh_or_symbol(cursor, scope)?;
    cursor.expect(",")?;
    cursor.expect("[")?;
    let empty = Mesh::default();
    let mut reader = AxisReader::new(mesh.get().map_or(&empty, |mesh| scope.mesh(mesh)));
    let mut spans = ShardingSpans::default();
    let dims = cursor.list("]", |cursor| read_dim(cursor, &mut reader, &mut spans))?;
    let named = read_named_axes(cursor, &mut reader)?;
    cursor.expect(">")?;
    spans.whole = cursor.span_from(start);
    cursor.close(wrapping)?;
    // Without the mesh nothing more can be said.
    Error::check(mesh_error.into_iter().collect())?;
    let mut split = |list: Vec<(AxisRef, Span)>| -> Vec<AxisRef> {
        spans.axes.extend(list.iter().map(|(_, span)| *span));
        list.into_iter().map(|(axis, _)| axis).collect()
    };
    let [replicated, unreduced] = named;
    let (replicated, unreduced) = (split(replicated), split(unreduced));
    let sharding = TensorSharding { mesh, dims, replicated, unreduced };
    let problems = mesh_problems_of(&sharding, reader.mesh);
    let mut diagnostics = reader.problems;
    diagnostics.extend(problems.into_iter().map(|p| p.located(|part| spans.span_of(part))));
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.map(|span| span.start));
    Error::check(diagnostics)?;
    Ok(sharding)
}

/// Reads an alias of a sharding, `#name`.
fn read_alias(cursor: &mut Cursor<'_>, scope: &mut dyn MeshScope) -> Result<TensorSharding> {
    let start = cursor.position();
    cursor.expect("#")?;
    let name = match cursor.word() {
        Some((name, _)) => name.to_owned(),
        None => return Err(cursor.expected("the name of an attribute alias")),
    };
    let span = cursor.span_from(start);
    let Some((text, base)) = scope.alias(&format!("#{name}")) else {
        let message = format!("undefined attribute alias '#{name}'");
        return Err(Diagnostic::new(Code::Syntax, message).at(span).into());
    };
    let mut target = Cursor::new(&text, base);
    if target.peek("#") && !target.peek("#sdy") {
        // An alias of an alias: not followed, so that a circle cannot hang the parser.
        let message = format!("'#{name}' is not a sharding");
        return Err(Diagnostic::new(Code::Syntax, message).at(span).into());
    }
    let sharding = read_sharding(&mut target, scope)?;
    target.finish()?;
    Ok(sharding)
}

/// Reads `@symbol` or `mesh<...>`. A mesh that is not there is no reason to stop reading: it is
/// `NONE`, with the complaint to raise when all is read.
fn read_mesh_or_symbol(
    cursor: &mut Cursor<'_>,
    scope: &mut dyn MeshScope,
) -> Result<(MeshId, Option<Diagnostic>)> {
    if cursor.eat_word("mesh") {
        return Ok((scope.inlined(read_mesh(cursor)?), None));
    }
    if !cursor.peek("@") {
        return Err(cursor.expected("a mesh: '@name' or 'mesh<...>'"));
    }
    let (symbol, span) = cursor.symbol()?;
    if let Some(mesh) = scope.by_symbol(&symbol) {
        return Ok((mesh, None));
    }
    Ok((MeshId::NONE, Some(scope.unknown_mesh(&symbol).at(span))))
}

/// Reads `{"x", "y", ?}p1`.
fn read_dim(
    cursor: &mut Cursor<'_>,
    reader: &mut AxisReader<'_>,
    spans: &mut ShardingSpans,
) -> Result<DimSharding> {
    let start = cursor.position();
    cursor.expect("{")?;
    let mut dim = DimSharding::empty(true);
    let mut is_first = true;
    while !cursor.eat("}") {
        if !is_first && !cursor.eat(",") {
            return Err(cursor.expected("',' or '}'"));
        }
        is_first = false;
        if cursor.eat("?") {
            dim.is_closed = false;
            if !cursor.eat("}") {
                return Err(cursor.expected("'}' after '?', which stands last"));
            }
            break;
        }
        if !cursor.peek("\"") {
            return Err(cursor.expected("an axis like \"x\", or '?'"));
        }
        if let Some((axis, span)) = reader.axis_ref(cursor)? {
            dim.axes.push(axis);
            spans.axes.push(span);
        }
    }
    if let Some((word, span)) = cursor.word() {
        dim.priority = Some(priority(word).map_err(|problem| problem.at(span))?);
    }
    spans.dims.push(cursor.span_from(start));
    Ok(dim)
}

/// The priority that `p<number>` gives.
fn priority(word: &str) -> std::result::Result<i64, Diagnostic> {
    let digits = word.strip_prefix('p').unwrap_or_default();
    let error = |message: String| Err(Diagnostic::new(Code::Syntax, message));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return error(format!("expected a priority like p1, found '{word}'"));
    }
    if digits.starts_with('0') && digits.len() > 1 {
        return error(format!("a priority has no leading zeros, found '{word}'"));
    }
    digits.parse().or_else(|_| error("the priority does not fit in 64 bits".to_owned()))
}

/// Axes with their spans.
type SpannedAxes = Vec<(AxisRef, Span)>;

/// Reads `, replicated={...}` and `, unreduced={...}`, each at most once.
fn read_named_axes(
    cursor: &mut Cursor<'_>,
    reader: &mut AxisReader<'_>,
) -> Result<[SpannedAxes; 2]> {
    let mut lists = [None, None];
    while cursor.eat(",") {
        let which = if cursor.eat_word("replicated") {
            0
        } else if cursor.eat_word("unreduced") {
            1
        } else {
            return Err(cursor.expected("'replicated' or 'unreduced'"));
        };
        if lists[which].is_some() {
            let name = ["replicated", "unreduced"][which];
            return Err(cursor.expected(&format!("no second list of {name} axes")));
        }
        cursor.expect("=")?;
        cursor.expect("{")?;
        if cursor.peek("}") {
            return Err(cursor.expected("an axis (leave the list out if it is empty)"));
        }
        lists[which] = Some(reader.list(cursor)?);
    }
    Ok(lists.map(Option::unwrap_or_default))
}

/// Appends `<@mesh, [{"x"}, {?}], replicated={"y"}>`.
pub fn write_sharding(out: &mut String, sharding: &TensorSharding, scope: &dyn MeshScope) {
    write_sharding_of(out, sharding, scope.mesh(sharding.mesh), scope.symbol(sharding.mesh));
}

/// The same for a sharding over `mesh`, which goes by `symbol` unless it is inlined.
pub fn write_sharding_of(
    out: &mut String,
    sharding: &TensorSharding,
    mesh: &Mesh,
    symbol: Option<&str>,
) {
    out.push('<');
    if let Some(symbol) = symbol {
        write_symbol(out, symbol);
    } else {
        out.push_str("mesh");
        write_mesh(out, mesh);
    }
    out.push_str(", [");
    for (i, dim) in sharding.dims.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        write_dim(out, dim, mesh);
    }
    out.push(']');
    for (name, axes) in [("replicated", &sharding.replicated), ("unreduced", &sharding.unreduced)] {
        if !axes.is_empty() {
            let _ = write!(out, ", {name}={{");
            write_axes(out, axes, mesh);
            out.push('}');
        }
    }
    out.push('>');
}

/// Appends `{"x", ?}p1`.
pub fn write_dim(out: &mut String, dim: &DimSharding, mesh: &Mesh) {
    out.push('{');
    write_axes(out, &dim.axes, mesh);
    if !dim.is_closed {
        out.push_str(if dim.axes.is_empty() { "?" } else { ", ?" });
    }
    out.push('}');
    if let Some(priority) = dim.priority {
        let _ = write!(out, "p{priority}");
    }
}

/// Appends `[<@mesh, [{"x"}]>, <@mesh, [{}]>]`.
pub fn write_sharding_per_value<'a>(
    out: &mut String,
    shardings: impl IntoIterator<Item = &'a TensorSharding>,
    scope: &dyn MeshScope,
) {
    out.push('[');
    for (i, sharding) in shardings.into_iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        write_sharding(out, sharding, scope);
    }
    out.push(']');
}

/// Parses the sharding of one dim, `{"x", ?}p1`, over `mesh`.
pub fn parse_dim(text: &str, base: u32, mesh: &Mesh) -> Result<DimSharding> {
    let mut cursor = Cursor::new(text, base);
    let mut reader = AxisReader::new(mesh);
    let dim = read_dim(&mut cursor, &mut reader, &mut ShardingSpans::default())?;
    cursor.finish()?;
    Error::check(reader.problems)?;
    Ok(dim)
}
