//! Signatures of ops: the bytes that their rules may depend on.

use super::parser::{Building, Parser};
use crate::index::SignatureId;
use crate::ir::{OpKind, OpTraits, Signature, Type};
use std::hash::{Hash, Hasher};

/// Values longer than this stand in the key as a hash.
const MAX_VALUE_LEN: usize = 512;

impl Parser<'_> {
    /// The signature of an op whose parts are all on the stacks; `NONE` if it can have no rule.
    pub(super) fn signature(&mut self, building: &Building) -> SignatureId {
        let name = building.name;
        let types = &self.types[building.types..];
        let skipped = OpTraits::TERMINATOR;
        let has_rule = !name.traits.has(skipped)
            && !name.traits.has(OpTraits::CONSTANT_LIKE)
            && !matches!(name.kind, OpKind::Module | OpKind::Func | OpKind::Mesh | OpKind::Call)
            && types.iter().any(|&ty| {
                matches!(
                    self.program.types[ty],
                    Type::RankedTensor { .. } | Type::UnrankedTensor(_)
                )
            });
        if !has_rule {
            return SignatureId::NONE;
        }
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.extend_from_slice(&id_bytes(name.id));
        if !building.is_generic {
            self.append_syntax(building, &mut key);
        }
        for attr in self.attrs_from(building.attrs) {
            // Attributes with a dialect in their name are discardable.
            if self.program.strings.get(attr.name).contains('.') {
                continue;
            }
            key.push(0);
            key.extend_from_slice(&id_bytes(attr.name));
            append_value(self.text_at(attr.value), &mut key);
        }
        key.push(1);
        for &ty in types {
            key.extend_from_slice(&id_bytes(ty));
        }
        key.extend_from_slice(&(building.num_inputs as u32).to_le_bytes());
        let (inputs, results) = types.split_at(building.num_inputs.min(types.len()));
        let id = self.program.signatures.intern(&key, || Signature {
            name: name.id,
            example: building.op,
            syntax: building.syntax,
            operand_types: inputs.into(),
            result_types: results.into(),
        });
        self.key = key;
        id
    }
    /// Appends the text between the op's name and its types, without operand names and dictionary.
    fn append_syntax(&self, building: &Building, key: &mut Vec<u8>) {
        let (syntax, dict) = (building.syntax, building.dict);
        let pieces = if dict.start > syntax.start && dict.end < syntax.end {
            [(syntax.start, dict.start), (dict.end, syntax.end)]
        } else if dict.is_empty() || dict.start >= syntax.end || dict.end <= syntax.start {
            [(syntax.start, syntax.end), (0, 0)]
        } else {
            [(syntax.start, dict.start.max(syntax.start)), (dict.end.min(syntax.end), syntax.end)]
        };
        for (start, end) in pieces {
            let text = self.text_at(crate::ir::Span::new(start, end)).trim_ascii();
            let mut rest = text.as_bytes();
            while let Some(at) = memchr::memchr(b'%', rest) {
                key.extend_from_slice(&rest[..=at]);
                rest = &rest[at + 1..];
                let name = rest.iter().position(|byte| {
                    !(byte.is_ascii_alphanumeric()
                        || matches!(byte, b'_' | b'$' | b'.' | b'-' | b'#'))
                });
                rest = &rest[name.unwrap_or(rest.len())..];
            }
            key.extend_from_slice(rest);
        }
    }
}

fn id_bytes(id: impl crate::index::Id) -> [u8; 4] {
    (id.index() as u32).to_le_bytes()
}

/// Appends `text`, or its length and hash if it is long: payloads are not kept twice.
fn append_value(text: &str, key: &mut Vec<u8>) {
    if text.len() <= MAX_VALUE_LEN {
        key.push(b'=');
        key.extend_from_slice(text.as_bytes());
        return;
    }
    let mut hasher = std::hash::DefaultHasher::new();
    text.hash(&mut hasher);
    key.push(b'#');
    key.extend_from_slice(&hasher.finish().to_le_bytes());
    key.extend_from_slice(&text.len().to_le_bytes());
}
