//! Text of tensor shardings: `<@mesh, [{"x", "y":(1)2, ?}p1, {}], replicated={"z"}, unreduced={"w"}>`.
//!
//! Parsing a sharding also verifies all properties that do not depend on the tensor, because it
//! knows the spans of the parts.

use super::axis::{write_axes, AxisReader};
use super::cursor::{Cursor, Wrapping};
use super::mesh::{read_mesh, write_mesh};
use super::named_axes::read_named_axes;
use super::parameter::{with_hint, Parameter};
use super::problem::Part;
use super::quote::write_symbol;
use super::sharding_rules::mesh_problems_of;
use super::MeshScope;
use crate::axis::AxisRef;
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::{Id, MeshId};
use crate::memory;
use crate::mesh::Mesh;
use crate::sharding::{DimSharding, ReductionOp, TensorSharding};
use std::fmt::Write as _;

const DIMS: Parameter = Parameter::new(
    "Sdy_TensorSharding",
    "dim_shardings",
    "::llvm::ArrayRef<DimensionShardingAttr>",
);
const SHARDINGS: Parameter = Parameter::new(
    "Sdy_TensorShardingPerValue",
    "shardings",
    "::llvm::ArrayRef<TensorShardingAttr>",
);
/// The spans of the parts of a sharding.
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

/// A parsed sharding, and all errors in it.
#[derive(Clone, Debug)]
pub struct ReadSharding {
    /// The sharding, without axes that its mesh does not have; its mesh may be `NONE`.
    pub sharding: TensorSharding,
    /// The errors.
    pub problems: Vec<Diagnostic>,
}

impl ReadSharding {
    fn check(self) -> Result<TensorSharding> {
        Error::check(self.problems)?;
        Ok(self.sharding)
    }
}

/// Parses and verifies a sharding, `#sdy.sharding<...>` or the part in angle brackets alone. `base`
/// is the offset of `text` in the program's text.
pub fn parse_sharding(text: &str, base: u32, scope: &mut dyn MeshScope) -> Result<TensorSharding> {
    memory::ensure_for_text(text)?;
    read_lone_sharding(text, base, scope)?.check()
}

/// Parses a sharding; fails only on syntax errors.
pub fn read_lone_sharding(
    text: &str,
    base: u32,
    scope: &mut dyn MeshScope,
) -> Result<ReadSharding> {
    let mut cursor = Cursor::new(text, base);
    let read = read_sharding(&mut cursor, scope)?;
    cursor.finish()?;
    Ok(read)
}

/// Parses a list of shardings, `#sdy.sharding_per_value<[<...>, <...>]>` or the part in square
/// brackets alone; fails only on syntax errors.
pub fn read_sharding_per_value(
    text: &str,
    base: u32,
    scope: &mut dyn MeshScope,
) -> Result<Vec<ReadSharding>> {
    let mut cursor = Cursor::new(text, base);
    let shardings = read_shardings(&mut cursor, scope)?;
    cursor.finish()?;
    Ok(shardings)
}

/// Parses and verifies a list of shardings, see [`read_sharding_per_value`].
pub fn parse_sharding_per_value(
    text: &str,
    base: u32,
    scope: &mut dyn MeshScope,
) -> Result<Vec<TensorSharding>> {
    memory::ensure_for_text(text)?;
    read_sharding_per_value(text, base, scope)?.into_iter().map(ReadSharding::check).collect()
}

/// Reads a list of shardings.
pub(super) fn read_shardings(
    cursor: &mut Cursor<'_>,
    scope: &mut dyn MeshScope,
) -> Result<Vec<ReadSharding>> {
    let wrapping = cursor.open("sharding_per_value");
    let angled = wrapping != Wrapping::Stripped || cursor.peek("<");
    if angled {
        cursor.expect("<")?;
    }
    cursor.expect("[")?;
    let mut shardings = Vec::new();
    if !cursor.peek("]") {
        let read = cursor.items(|cursor| read_sharding(cursor, scope));
        // In an op's custom syntax the reference parses the list separately.
        shardings = if angled { cursor.parameter(&SHARDINGS, |_| read)? } else { read? };
    }
    cursor.expect("]")?;
    if angled {
        cursor.expect(">")?;
    }
    cursor.close(wrapping)?;
    Ok(shardings)
}

/// Reads a sharding and collects its errors.
pub(super) fn read_sharding(
    cursor: &mut Cursor<'_>,
    scope: &mut dyn MeshScope,
) -> Result<ReadSharding> {
    if cursor.peek("#") && !cursor.peek("#sdy") {
        return read_alias(cursor, scope);
    }
    let wrapping = cursor.open("sharding");
    let start = cursor.position();
    cursor.expect("<")?;
    let (mesh, mesh_error) = read_mesh_or_symbol(cursor, scope)?;
    cursor.expect(",")?;
    cursor.expect("[")?;
    let (empty, shardy) = (Mesh::default(), scope.shardy());
    let mut reader = AxisReader::new(mesh.get().map_or(&empty, |mesh| scope.mesh(mesh)));
    let mut spans = ShardingSpans::default();
    let mut dims = Vec::new();
    if !cursor.eat("]") {
        dims = cursor.parameter(&DIMS, |cursor| {
            cursor.items(|cursor| read_dim(cursor, &mut reader, &mut spans))
        })?;
        cursor.expect("]")?;
    }
    let (named, reduction_op) = read_named_axes(cursor, &mut reader, shardy)?;
    cursor.expect(">")?;
    spans.whole = cursor.span_from(start);
    cursor.close(wrapping)?;
    let mut split = |list: Vec<(AxisRef, Span)>| -> Vec<AxisRef> {
        spans.axes.extend(list.iter().map(|(_, span)| *span));
        list.into_iter().map(|(axis, _)| axis).collect()
    };
    let [replicated, unreduced] = named;
    let (replicated, unreduced) = (split(replicated), split(unreduced));
    let mut sharding = TensorSharding { mesh, dims, replicated, unreduced, reduction_op };
    // Without the mesh nothing else can be verified.
    let mut problems: Vec<Diagnostic> = mesh_error.into_iter().collect();
    if mesh.is_some() {
        let found = mesh_problems_of(&sharding, reader.mesh, &reader.unknown, shardy).into_iter();
        problems.extend(found.map(|problem| problem.located(|part| spans.span_of(part))));
        problems.sort_by_key(|diagnostic| diagnostic.span.map(|span| span.start));
    }
    if !reader.unknown.is_empty() {
        let num_axes = reader.mesh.axes.len();
        let lists = sharding.dims.iter_mut().map(|dim| &mut dim.axes);
        for axes in lists.chain([&mut sharding.replicated, &mut sharding.unreduced]) {
            axes.retain(|axis| axis.axis.index() < num_axes);
        }
    }
    Ok(ReadSharding { sharding, problems })
}

/// Reads an alias of a sharding, `#name`.
fn read_alias(cursor: &mut Cursor<'_>, scope: &mut dyn MeshScope) -> Result<ReadSharding> {
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
        // An alias of an alias is not resolved, since aliases may be cyclic.
        let message = format!("'#{name}' is not a sharding");
        return Err(Diagnostic::new(Code::Syntax, message).at(span).into());
    }
    let read = read_sharding(&mut target, scope)?;
    target.finish()?;
    Ok(read)
}

/// Reads `@symbol` or `mesh<...>`. An unknown mesh does not stop parsing: it becomes `NONE`, with
/// the error to report at the end.
fn read_mesh_or_symbol(
    cursor: &mut Cursor<'_>,
    scope: &mut dyn MeshScope,
) -> Result<(MeshId, Option<Diagnostic>)> {
    if cursor.eat_word("mesh") {
        let mesh = read_mesh(cursor);
        let mesh = cursor.or_failed(mesh, || "failed to parse MeshAttr".to_owned())?;
        return Ok((scope.inlined(mesh), None));
    }
    if !cursor.peek("@") {
        let expected =
            with_hint(cursor.expected("attribute value"), "a mesh is @name or mesh<...>");
        let message = "expecting MeshAttr or FlatSymbolRefAttr, got: <<NULL ATTRIBUTE>>";
        return cursor.or_failed(Err(expected), || message.to_owned());
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
    while !cursor.eat("}") {
        if !dim.axes.is_empty() {
            cursor.expect(",")?;
        }
        if cursor.eat("?") {
            dim.is_closed = false;
            cursor.expect("}")?;
            break;
        }
        let (axis, span) = reader.axis_ref(cursor)?;
        dim.axes.push(axis);
        spans.axes.push(span);
    }
    if let Some((word, span)) = cursor.word() {
        dim.priority = Some(priority(word).map_err(|problem| problem.at(span))?);
    }
    spans.dims.push(cursor.span_from(start));
    Ok(dim)
}

/// Parses `p<number>`, a priority.
fn priority(word: &str) -> std::result::Result<i64, Diagnostic> {
    let digits = word.strip_prefix('p').unwrap_or_default();
    let error = |message: &str, hint: &str| {
        let problem = Diagnostic::new(Code::Syntax, format!("{message}, got: {word}"));
        Err(problem.with_hint(hint))
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return error("expecting priority in format 'p<number>'", "p0 comes first, then p1");
    }
    if digits.starts_with('0') && digits.len() > 1 {
        return error("priorities with leading zeros are not allowed", "write p1, not p01");
    }
    digits.parse().or_else(|_| error("expecting integer priority", "it has to fit in 64 bits"))
}

/// Appends `<@mesh, [{"x"}, {?}], replicated={"y"}>`.
pub fn write_sharding(out: &mut String, sharding: &TensorSharding, scope: &dyn MeshScope) {
    write_sharding_of(out, sharding, scope.mesh(sharding.mesh), scope.symbol(sharding.mesh));
}

/// Appends a sharding over `mesh` in the form of [`write_sharding`]; the mesh is written as
/// `symbol`, or inline if that is `None`.
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
    let reduction = match sharding.reduction_op {
        ReductionOp::Sum => "",
        other => other.keyword(),
    };
    for (name, reduction, axes) in
        [("replicated", "", &sharding.replicated), ("unreduced", reduction, &sharding.unreduced)]
    {
        if !axes.is_empty() {
            let _ = write!(out, ", {name}={reduction}{{");
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
    Error::check(reader.problems())?;
    Ok(dim)
}
