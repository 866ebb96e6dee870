//! Rules that are remembered across programs.
//!
//! A program's signatures have ids of its own, so the key is text: name, attributes, shapes. Looking a
//! rule up costs a fraction of making it, which shows where a program is propagated again and again.
//! The cache takes no more rules once it is full: a program in which no two ops are alike gains
//! nothing and would only fill memory.

use crate::index::SignatureId;
use crate::ir::{Program, Span, Type};
use crate::rule::SharedRule;
use rustc_hash::FxHashMap;

/// The most signatures that are remembered: many times those of a large model.
pub const MAX_ENTRIES: usize = 1 << 14;

/// The rules of a signature: in usual surroundings, and in special ones.
pub type RulePair = [Option<SharedRule>; 2];

/// Rules by signature.
#[derive(Debug, Default)]
pub struct RuleCache {
    pairs: FxHashMap<Box<[u8]>, RulePair>,
}

impl RuleCache {
    /// Whether there is no room for more.
    pub fn is_full(&self) -> bool {
        self.pairs.len() >= MAX_ENTRIES
    }
    /// Takes the rules of `other` back, which was taken out of its place while this one stood there.
    pub fn give_back(&mut self, other: Self) {
        if self.pairs.len() < other.pairs.len() {
            *self = other;
        }
    }
    /// What is remembered under `key`.
    pub fn get(&self, key: &[u8]) -> Option<&RulePair> {
        self.pairs.get(key)
    }
    /// Remembers `pair` under `key` while there is room.
    pub fn insert(&mut self, key: &[u8], pair: &RulePair) {
        if !self.is_full() {
            self.pairs.insert(key.into(), pair.clone());
        }
    }
}

/// Writes to `key` what the rule of a signature depends on, in terms that mean the same in every
/// program. False if there are no such terms: some attribute is an alias.
pub fn write_key(
    program: &Program,
    id: SignatureId,
    conservative: bool,
    key: &mut Vec<u8>,
) -> bool {
    let signature = &program.signatures[id];
    key.clear();
    key.push(u8::from(conservative));
    key.extend_from_slice(program.strings.get(signature.name).as_bytes());
    key.push(0);
    for &ty in signature.operand_types.iter().chain(&signature.result_types) {
        write_shape(&program.types[ty], key);
    }
    key.extend_from_slice(&(signature.operand_types.len() as u32).to_le_bytes());
    let start = key.len();
    let (syntax, dict) = (signature.syntax, program.op_texts[signature.example].dict);
    if syntax.start <= dict.start && dict.end <= syntax.end {
        write_without_names(program.text.get(Span::new(syntax.start, dict.start)), key);
        write_without_names(program.text.get(Span::new(dict.end, syntax.end)), key);
    } else {
        write_without_names(program.text.get(syntax), key);
    }
    for attr in program.op_attrs(signature.example) {
        let name = program.strings.get(attr.name);
        // Attributes with a dialect in their name are not the op's own.
        if !name.contains('.') {
            key.push(0);
            key.extend_from_slice(name.as_bytes());
            key.push(b'=');
            key.extend_from_slice(program.text.get(attr.value).as_bytes());
        }
    }
    !has_alias(&key[start..])
}

fn write_shape(ty: &Type, key: &mut Vec<u8>) {
    let Type::RankedTensor { shape, .. } = ty else {
        key.push(u8::MAX);
        return;
    };
    key.push(shape.len() as u8);
    for dim in shape {
        key.extend_from_slice(&dim.unwrap_or(i64::MIN).to_le_bytes());
    }
}

/// Writes `text` with every `%name#0` as `%`.
fn write_without_names(text: &str, key: &mut Vec<u8>) {
    let mut bytes = text.trim_ascii().as_bytes();
    while let Some(at) = memchr::memchr(b'%', bytes) {
        key.extend_from_slice(&bytes[..=at]);
        bytes = &bytes[at + 1..];
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$.-#".contains(byte);
        let end = bytes.iter().position(|byte| !is_name(byte)).unwrap_or(bytes.len());
        bytes = &bytes[end..];
    }
    key.extend_from_slice(bytes);
}

/// Whether some `#word` is not the name of a dialect's attribute, which has a dot or a body.
fn has_alias(text: &[u8]) -> bool {
    memchr::memchr_iter(b'#', text).any(|at| {
        let rest = &text[at + 1..];
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$.-".contains(byte);
        let end = rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        rest.get(end) != Some(&b'<') && !rest[..end].contains(&b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_values_are_no_part_of_a_key() {
        let mut key = Vec::new();
        write_without_names(" %12#0, %arg_1, dims = [0]", &mut key);
        assert_eq!(key, b"%, %, dims = [0]");
    }

    #[test]
    fn aliases_are_seen() {
        assert!(has_alias(b"x = #map"));
        assert!(has_alias(b"[#a, #stablehlo<b c>]"));
        assert!(!has_alias(b"[#stablehlo<b c>, #stablehlo.d, #stablehlo.e<>]"));
    }
}
