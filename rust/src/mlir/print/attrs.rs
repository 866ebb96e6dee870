//! Prints attribute dictionaries.

use super::printer::{Edit, Printer};
use crate::attribute;
use crate::error::Span;
use crate::index::{OpId, ShardingId, ValueId};
use crate::ir::{Attr, OpKind, Program};
use crate::mlir::cursor::Cursor;
use crate::sharding::TensorSharding;

impl Printer<'_> {
    /// `{name = value, ...}` of `attrs` and `more`; empty if there are none.
    pub(super) fn dict(&self, attrs: &[Attr], more: &[(&str, String)]) -> String {
        if attrs.is_empty() && more.is_empty() {
            return String::new();
        }
        let mut out = String::from("{");
        let named = attrs
            .iter()
            .map(|attr| (self.program.str(attr.name), self.program.text().get(attr.value)));
        let more = more.iter().map(|(name, value)| (*name, value.as_str()));
        for (index, (name, value)) in named.chain(more).enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            append_name(name, &mut out);
            if !value.is_empty() {
                out.push_str(" = ");
                out.push_str(value);
            }
        }
        out.push('}');
        out
    }
    /// Appends the dictionary of `op` with its shardings and its rule; false if it is empty.
    pub(super) fn write_op_dict(&mut self, op: OpId, out: &mut String) -> bool {
        let program = self.program;
        let attrs = program.op_attrs(op);
        let stored = program.no_result_shardings(op);
        let results = program.op_results(op);
        let has_sharding =
            stored.is_some() || results.clone().any(|value| program.sharding(value).is_some());
        let rule = program.op_rules().get(op).get();
        if attrs.is_empty() && !has_sharding && rule.is_none() {
            return false;
        }
        let mut separator = "{";
        for attr in attrs {
            out.push_str(std::mem::replace(&mut separator, ", "));
            append_name(program.str(attr.name), out);
            if !attr.value.is_empty() {
                out.push_str(" = ");
                out.push_str(program.text().get(attr.value));
            }
        }
        if has_sharding {
            out.push_str(std::mem::replace(&mut separator, ", "));
            out.push_str("sdy.sharding = #sdy.sharding_per_value<");
            if let Some(ids) = stored {
                self.write_sharding_list(ids.iter().map(|&id| (id, 0)), out);
            } else {
                let rank = |value| program.value_type(value).rank().unwrap_or(0);
                let ids = results.map(|value| (program.sharding(value), rank(value)));
                self.write_sharding_list(ids, out);
            }
            out.push('>');
        }
        if let Some(rule) = rule {
            out.push_str(separator);
            out.push_str("sdy.sharding_rule = ");
            attribute::write_rule(out, &program.rules()[rule]);
        }
        out.push('}');
        true
    }
    /// Appends `[<@mesh, [...]>, ...]` for shardings of values of these ranks; missing shardings
    /// are printed as open.
    fn write_sharding_list(
        &mut self,
        ids: impl Iterator<Item = (ShardingId, usize)> + Clone,
        out: &mut String,
    ) {
        let program = self.program;
        let mesh = ids.clone().find_map(|(id, _)| program.shardings().get(id)).map(|s| s.mesh);
        out.push('[');
        for (index, (id, rank)) in ids.enumerate() {
            // Without any sharding there is no mesh, and the list is empty.
            let Some(mesh) = mesh else { break };
            out.push_str(if index == 0 { "" } else { ", " });
            if id.is_some() {
                out.push_str(self.sharding_texts.get(program, id));
            } else {
                let open = TensorSharding::fully_replicated(mesh, rank, false);
                attribute::write_sharding(out, &open, program);
            }
        }
        out.push(']');
    }
    /// The attributes `sdy.sharding` and `sdy.sharding_rule` of `op`, if they belong in its
    /// dictionary.
    pub(super) fn sharding_attrs(&self, op: OpId) -> Vec<(&'static str, String)> {
        let mut attrs = Vec::new();
        let stored = self.program.no_result_shardings(op);
        let shardings: Vec<ShardingId> = match stored {
            Some(shardings) => shardings.to_vec(),
            None => self.program.op_results(op).map(|value| self.program.sharding(value)).collect(),
        };
        if stored.is_some() || shardings.iter().any(|sharding| sharding.is_some()) {
            let results: Vec<ValueId> = self.program.op_results(op).collect();
            let list = self.sharding_list(&shardings, &results);
            attrs.push(("sdy.sharding", format!("#sdy.sharding_per_value<{list}>")));
        }
        if let Some(rule) = self.program.op_rules().get(op).get() {
            let mut text = String::new();
            attribute::write_rule(&mut text, &self.program.rules()[rule]);
            attrs.push(("sdy.sharding_rule", text));
        }
        attrs
    }
    /// `[<@mesh, [...]>, ...]`; missing shardings are printed as open.
    pub(super) fn sharding_list(&self, ids: &[ShardingId], values: &[ValueId]) -> String {
        let mesh = ids.iter().find_map(|&id| self.program.shardings().get(id)).map(|s| s.mesh);
        let Some(mesh) = mesh else { return "[]".into() };
        let mut out = String::from("[");
        for (index, &id) in ids.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            if let Some(sharding) = self.program.shardings().get(id) {
                attribute::write_sharding(&mut out, sharding, self.program);
                continue;
            }
            let ty = values.get(index).map(|&value| self.program.value_type(value));
            let rank = ty.and_then(crate::ir::Type::rank).unwrap_or(0);
            let open = TensorSharding::fully_replicated(mesh, rank, false);
            attribute::write_sharding(&mut out, &open, self.program);
        }
        out.push(']');
        out
    }
    /// `<@mesh, [...]>`
    pub(super) fn sharding_text(&self, id: ShardingId) -> String {
        let mut out = String::new();
        if let Some(sharding) = self.program.shardings().get(id) {
            attribute::write_sharding(&mut out, sharding, self.program);
        }
        out
    }
    /// Appends the edit that replaces the dictionary of `op`.
    pub(super) fn dict_edit(&self, op: OpId, edits: &mut Vec<Edit>) {
        let program = self.program;
        let (kind, dict) = (program.kind(op), program.printing().op(op).dict);
        if kind == OpKind::Func {
            return;
        }
        let is_generic = self.is_generic(op);
        // These ops have `attributes {...}`.
        let is_special = matches!(kind, OpKind::While | OpKind::Module | OpKind::Scan)
            || program.op_name(op) == "mhlo.scan";
        if !is_generic && !is_special {
            edits.push(Edit::Dict(dict));
            return;
        }
        let mut attrs: Vec<Attr> = program.op_attrs(op).to_vec();
        let mut more = self.sharding_attrs(op);
        if is_generic {
            if let Some(properties) = self.properties(op) {
                let inside = |attr: &Attr| {
                    attr.value.start >= properties.start && attr.value.end <= properties.end
                };
                let kept: Vec<&Attr> = attrs.iter().filter(|attr| inside(attr)).collect();
                if kept.len() == count_entries(program, properties) {
                    attrs.retain(|attr| !inside(attr));
                } else {
                    edits.push(Edit::Text(properties, String::new()));
                }
            }
        }
        if is_special {
            let needs_word = dict.is_empty() && !is_generic;
            let text = self.dict(&attrs, &more);
            let word = if needs_word && !text.is_empty() { " attributes " } else { "" };
            let text = if text.is_empty() && !dict.is_empty() { "{}".into() } else { text };
            edits.push(Edit::Text(dict, format!("{word}{text}")));
            return;
        }
        // Attributes in the custom syntax are not in the dictionary.
        more.retain(|(name, _)| !name.is_empty());
        let text = self.dict(&attrs, &more);
        let text = if dict.is_empty() && !text.is_empty() { format!(" {text}") } else { text };
        edits.push(Edit::Text(dict, text));
    }
    /// The text of `<{...}>` of an op in generic form.
    fn properties(&self, op: OpId) -> Option<Span> {
        let source = self.program.text().source();
        let mut cursor = Cursor::new(source, self.name_start(op) as usize);
        cursor.string().ok()?;
        if cursor.next_byte() != b'(' {
            return None;
        }
        cursor.skip_balanced().ok()?;
        if cursor.next_byte() == b'[' {
            cursor.skip_balanced().ok()?;
        }
        if cursor.next_byte() != b'<' {
            return None;
        }
        let start = cursor.pos;
        cursor.skip_balanced().ok()?;
        Some(Span::new(start as u32, cursor.pos as u32))
    }
}

/// The number of attributes in the text of `<{...}>`.
fn count_entries(program: &Program, span: Span) -> usize {
    let source = program.text().source();
    let mut cursor = Cursor::new(source, span.start as usize + 1);
    let mut count = 0;
    if !cursor.eat(b'{') || cursor.eat(b'}') {
        return 0;
    }
    count += 1;
    while cursor.pos < span.end as usize {
        match cursor.next_byte() {
            b',' => count += 1,
            b'"' if cursor.string().is_ok() => continue,
            b'(' | b'[' | b'{' | b'<' if cursor.skip_balanced().is_ok() => continue,
            b'-' => cursor.pos += 1,
            _ => {}
        }
        cursor.pos += 1;
    }
    count
}

/// Appends the name of an attribute, quoted if necessary.
pub(super) fn append_name(name: &str, out: &mut String) {
    let is_bare = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.'));
    if is_bare {
        out.push_str(name);
    } else {
        out.push('"');
        out.push_str(name);
        out.push('"');
    }
}

/// Appends `@name`, quoted if necessary.
pub(super) fn append_symbol(name: &str, out: &mut String) {
    out.push('@');
    let is_bare = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.' | b'-'));
    if is_bare {
        out.push_str(name);
    } else {
        out.push('"');
        out.push_str(name);
        out.push('"');
    }
}
