//! Attributes and types of `mpmd`, Shardy's dialect for pipelines:
//! `#mpmd.topology<<"m1" : <["x"=2]>>>`,
//! `!mpmd.mesh_tensor<"m1", tensor<8xf32>, sharding=<@mesh, [{"x"}]>>`.

use super::position::Grammar;
use super::types::TypeKind;
use crate::attribute::{self, Form};
use crate::error::{Result, Span};
use crate::mlir::cursor::syntax;

/// The ways in which the tensors of several meshes are combined.
const REDUCTIONS: [&str; 7] = ["none", "add", "max", "min", "mul", "or", "and"];

impl Grammar<'_, '_> {
    /// The text after the name of an attribute of the dialect.
    pub(super) fn mpmd_attribute(&mut self, name: &str) -> Result<()> {
        match name {
            "topology" => {
                self.cursor.expect(b'<')?;
                self.one_or_more(Self::named_mesh)?;
                self.cursor.expect(b'>')
            }
            "named_mesh" => self.named_mesh_body(),
            "user_origin" => {
                self.cursor.expect(b'<')?;
                self.string_attribute()?;
                self.transpose_count()?;
                self.cursor.expect(b'>')
            }
            "origin" => self.plain_string(),
            "mesh_with_origins" => self.mesh_with_origins(),
            "meshes_with_origins" => {
                self.cursor.expect(b'<')?;
                if self.cursor.eat(b'>') {
                    return Ok(());
                }
                self.one_or_more(|grammar| {
                    grammar.stripped("mesh_with_origins", Self::mesh_with_origins)
                })?;
                self.cursor.expect(b'>')
            }
            _ => self.reduction_body(),
        }
    }
    /// `<add>`, or an attribute with this value.
    pub(in crate::mlir) fn reduction(&mut self) -> Result<()> {
        self.stripped("reduction", Self::reduction_body)
    }
    /// `"name"(2)`, without the number if that is 0.
    pub(in crate::mlir) fn short_origin(&mut self) -> Result<()> {
        self.plain_string()?;
        self.transpose_count()
    }
    /// `<"mesh", tensor<...>, sharding=<...>, memory_kind="...">`.
    pub(super) fn mesh_tensor(&mut self) -> Result<()> {
        self.cursor.expect(b'<')?;
        self.string_attribute()?;
        self.cursor.expect(b',')?;
        self.cursor.skip_space();
        let start = self.cursor.pos;
        self.ty()?;
        let text = self.cursor.since(start);
        // An alias inside the definition of another alias is resolved when that one is used.
        let is_open = self.has_no_aliases() && text.starts_with('!');
        if !is_open && self.kind_since(start) != TypeKind::Tensor {
            let message = format!(
                "invalid kind of type specified: expected builtin.tensor, but found '{text}'"
            );
            return Err(syntax(self.cursor.span_since(start), message).into());
        }
        if self.cursor.eat(b'>') {
            return Ok(());
        }
        self.cursor.expect(b',')?;
        if !self.cursor.eat_keyword("sharding") {
            return self.memory_kind();
        }
        self.cursor.expect(b'=')?;
        self.sharding()?;
        if self.cursor.eat(b',') {
            return self.memory_kind();
        }
        self.cursor.expect(b'>')
    }

    /// `memory_kind="..." >`.
    fn memory_kind(&mut self) -> Result<()> {
        self.cursor.expect_keyword("memory_kind")?;
        self.cursor.expect(b'=')?;
        self.string_attribute()?;
        self.cursor.expect(b'>')
    }
    /// `<@mesh, [{"x"}]>`, or an attribute that is a sharding.
    fn sharding(&mut self) -> Result<()> {
        self.attribute_of_shardy("sharding", Form::Sharding)
    }
    /// An attribute of Shardy whose name may be omitted.
    fn attribute_of_shardy(&mut self, name: &str, form: Form) -> Result<()> {
        match self.cursor.next_byte() {
            b'#' => {
                let span = self.attribute_span()?;
                self.require_kind(span, "sdy", name)
            }
            b'<' => {
                let start = self.cursor.pos;
                let rest = &self.cursor.text()[start..];
                let shardy = self.shardy();
                if let Some(error) = attribute::syntax_error(form, rest, start as u32, shardy) {
                    return Err(error);
                }
                self.cursor.skip_balanced()
            }
            _ => Err(self.cursor.expected("'<'")),
        }
    }
    /// An attribute of this dialect whose name may be omitted.
    fn stripped(&mut self, name: &str, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.cursor.next_byte() != b'#' {
            return body(self);
        }
        let span = self.attribute_span()?;
        self.require_kind(span, "mpmd", name)
    }
    fn attribute_span(&mut self) -> Result<Span> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        self.attribute()?;
        Ok(self.cursor.span_since(start))
    }
    /// Checks that the attribute at `span`, with aliases resolved, is `#dialect.name`.
    fn require_kind(&self, span: Span, dialect: &str, name: &str) -> Result<()> {
        let text = &self.cursor.text()[span.start as usize..span.end as usize];
        let text = self.alias_text(text).unwrap_or(text).trim_start();
        let rest = text.strip_prefix('#').and_then(|text| text.strip_prefix(dialect));
        let rest = rest.and_then(|rest| rest.strip_prefix(['.', '<']));
        if self.has_no_aliases() || rest.is_some_and(|rest| rest.trim_start().starts_with(name)) {
            return Ok(());
        }
        Err(syntax(span, "invalid kind of attribute specified").into())
    }
    fn named_mesh(&mut self) -> Result<()> {
        self.stripped("named_mesh", Self::named_mesh_body)
    }
    /// `<"name" : <["x"=2]>>`.
    fn named_mesh_body(&mut self) -> Result<()> {
        self.cursor.expect(b'<')?;
        self.plain_string()?;
        self.cursor.expect(b':')?;
        self.mesh_attribute()?;
        self.cursor.expect(b'>')
    }
    /// `<["x"=2]>`, or an attribute that is a mesh.
    fn mesh_attribute(&mut self) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        self.attribute_of_shardy("mesh", Form::Mesh)?;
        let text = self.cursor.since(start);
        let text = self.alias_text(text).unwrap_or(text).trim();
        match attribute::parse_mesh(text, start as u32) {
            Err(error) if !self.has_no_aliases() => Err(error),
            _ => Ok(()),
        }
    }
    /// `"mesh"["origin", "origin"]`, the origins being optional.
    fn mesh_with_origins(&mut self) -> Result<()> {
        self.plain_string()?;
        let end = self.cursor.pos;
        if !self.cursor.eat(b'[') {
            self.cursor.pos = end;
            return Ok(());
        }
        self.one_or_more(|grammar| grammar.stripped("origin", Self::plain_string))?;
        self.cursor.expect(b']')
    }
    fn reduction_body(&mut self) -> Result<()> {
        self.cursor.expect(b'<')?;
        self.case("ReductionType", &REDUCTIONS)?;
        self.cursor.expect(b'>')
    }
    /// `(2)`, or nothing.
    fn transpose_count(&mut self) -> Result<()> {
        let end = self.cursor.pos;
        if !self.cursor.eat(b'(') {
            self.cursor.pos = end;
            return Ok(());
        }
        let read = self.int().and_then(|()| self.cursor.expect(b')'));
        read.map_err(|mut error| {
            let place = self.cursor.here();
            error.diagnostics.push(syntax(place, "could not parse transpose count value."));
            error
        })
    }
    /// A string attribute, with or without a type.
    pub(in crate::mlir) fn string_attribute(&mut self) -> Result<()> {
        let span = self.attribute_span()?;
        let text = &self.cursor.text()[span.start as usize..span.end as usize];
        let text = self.alias_text(text).unwrap_or(text);
        let is_alias = text.starts_with('#') && self.has_no_aliases();
        if is_alias || text.trim_start().starts_with('"') {
            return Ok(());
        }
        Err(syntax(span, "invalid kind of attribute specified").into())
    }
    /// A string attribute without a type.
    fn plain_string(&mut self) -> Result<()> {
        if self.cursor.next_byte() != b'"' {
            return Err(self.cursor.expected("string"));
        }
        self.cursor.string().map(|_| ())
    }
    /// `item, item`, at least one.
    fn one_or_more(&mut self, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        loop {
            item(self)?;
            if !self.cursor.eat(b',') {
                return Ok(());
            }
        }
    }
}
