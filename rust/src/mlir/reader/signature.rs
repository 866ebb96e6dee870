//! Signatures of ops: the text that sharding rules may depend on.

use super::parser::{Parser, PendingOp};
use crate::index::SignatureId;
use crate::ir::{may_have_rule, write_attr, Signature, Type};

impl Parser<'_> {
    /// The signature of an op whose parts are all on the stacks; `NONE` if such ops have no rules,
    /// or if it is in generic form and has no tensors. An op in custom syntax without tensors has
    /// one, because its attributes are found by it.
    pub(super) fn signature_of(&mut self, pending: &PendingOp) -> SignatureId {
        let name = pending.name;
        let types = &self.parts.types[pending.base.types..];
        let is_tensor = |&ty| {
            let ty = &self.program.types()[ty];
            ty.rank().is_some() || matches!(ty, Type::UnrankedTensor(_))
        };
        let is_signed = may_have_rule(name.kind, name.traits)
            && (!pending.is_generic || types.iter().any(is_tensor));
        if !is_signed {
            return SignatureId::NONE;
        }
        let mut key = std::mem::take(&mut self.signature_key);
        key.clear();
        key.push_str(self.program.str(name.id));
        if !pending.is_generic {
            self.append_syntax(pending, &mut key);
        }
        for attr in &self.parts.attrs[pending.base.attrs..] {
            write_attr(self.program.str(attr.name), self.text_at(attr.value), &mut key);
        }
        let stem_len = key.len() as u32;
        let (inputs, results) = types.split_at(pending.num_inputs.min(types.len()));
        self.program.write_types(inputs, results, &mut key);
        let id = self.program.signatures_mut().intern(&key, || Signature {
            name: name.id,
            example: pending.op,
            syntax: pending.syntax,
            stem_len,
            operand_types: inputs.into(),
            result_types: results.into(),
        });
        self.signature_key = key;
        id
    }
    /// Appends the text between the op's name and its types, without operand names and dictionary.
    fn append_syntax(&self, pending: &PendingOp, key: &mut String) {
        let (syntax, dict) = (pending.syntax, pending.dict);
        let pieces = if dict.start > syntax.start && dict.end < syntax.end {
            [(syntax.start, dict.start), (dict.end, syntax.end)]
        } else if dict.is_empty() || dict.start >= syntax.end || dict.end <= syntax.start {
            [(syntax.start, syntax.end), (0, 0)]
        } else {
            [(syntax.start, dict.start.max(syntax.start)), (dict.end.min(syntax.end), syntax.end)]
        };
        for (start, end) in pieces {
            let mut rest = self.text_at(crate::ir::Span::new(start, end)).trim_ascii();
            while let Some(at) = memchr::memchr(b'%', rest.as_bytes()) {
                key.push_str(&rest[..=at]);
                rest = &rest[at + 1..];
                let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$.-#".contains(byte);
                let name = rest.bytes().position(|byte| !is_name(&byte));
                rest = &rest[name.unwrap_or(rest.len())..];
            }
            key.push_str(rest);
        }
    }
}
