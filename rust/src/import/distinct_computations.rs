//! Gives different named computations of the input different names.
//!
//! Export assumes that named computations with equal names were made from calls of one function,
//! and makes all of them calls of one function. That is true of computations that passes make of
//! calls, but need not be true of those of the input.

use crate::index::{FuncId, OpId, RegionId, StrId, ValueId};
use crate::ir::{OpKind, Payload, Program, SymbolTable};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::Hasher;

/// Renames each named computation whose name is also that of a function, or of an earlier named
/// computation with another body.
pub(super) fn run(program: &mut Program) {
    let computations = program.ops_in_post_order(&[OpKind::NamedComputation]);
    if computations.is_empty() {
        return;
    }
    let mut functions: FxHashSet<StrId> = FxHashSet::default();
    for func in program.functions_in_order() {
        functions.insert(program.func_name(func));
        functions.insert(program.original_name(func));
    }
    let mut symbols = SymbolTable::new(program);
    let mut counts: FxHashMap<StrId, u32> = FxHashMap::default();
    for &op in &computations {
        let name = name(program, op);
        let count = counts.entry(name).or_default();
        *count += 1;
        if *count == 1 && !functions.contains(&name) {
            symbols.reserve(program, name, FuncId::NONE);
        }
    }
    let mut is_kept: FxHashSet<StrId> = FxHashSet::default();
    // Different computations with their new names, by old name and hash of the body's text.
    let mut known: FxHashMap<(StrId, u64), Vec<(OpId, StrId)>> = FxHashMap::default();
    for op in computations {
        let old = name(program, op);
        let has_function = functions.contains(&old);
        if counts[&old] == 1 && !has_function {
            continue;
        }
        let alike = known.entry((old, hash(body_text(program, op)))).or_default();
        let same = alike.iter().find(|&&(first, _)| is_same(program, first, op)).copied();
        let new = match same {
            Some((_, new)) => new,
            None if !has_function && is_kept.insert(old) => old,
            None => symbols.reserve(program, old, FuncId::NONE),
        };
        if same.is_none() {
            alike.push((op, new));
        }
        rename(program, op, new);
    }
}

fn name(program: &Program, op: OpId) -> StrId {
    match program.payload(op) {
        Some(Payload::NamedComputation { name, .. }) => *name,
        _ => StrId::NONE,
    }
}

fn rename(program: &mut Program, op: OpId, new: StrId) {
    if let Some(Payload::NamedComputation { name, has_in_shardings, has_out_shardings }) =
        program.payload(op).cloned()
    {
        if name != new {
            program.set_payload(
                op,
                Payload::NamedComputation { name: new, has_in_shardings, has_out_shardings },
            );
        }
    }
}

/// Whether the bodies of two named computations have the same ops on the same values.
fn is_same(program: &Program, one: OpId, other: OpId) -> bool {
    let mut values = Values::default();
    let mut others = program.pre_order(other).skip(1);
    let is_same_inside = is_written_alike(body_text(program, one), body_text(program, other))
        && values.pair_regions(program, one, other)
        && program.pre_order(one).skip(1).all(|one| {
            others.next().is_some_and(|other| {
                is_same_op(program, one, other)
                    && values.are_used_alike(program, one, other)
                    && values.pair(program, program.op_results(one), program.op_results(other))
                    && values.pair_regions(program, one, other)
            })
        });
    is_same_inside && others.next().is_none()
}

/// Whether two ops of bodies with equal text are equal except for their operands and types.
/// Constants that passes have cloned have the text of the original.
fn is_same_op(program: &Program, one: OpId, other: OpId) -> bool {
    let written = |op| program.text().get(program.printing().op(op).span);
    program.op_name_id(one) == program.op_name_id(other)
        && program.payload(one) == program.payload(other)
        && (program.num_regions(one) > 0 || is_written_alike(written(one), written(other)))
}

/// The text of the body of a named computation; empty if a pass made it.
fn body_text(program: &Program, op: OpId) -> &str {
    program.text().get(program.printing().region_span(program.region(op, 0)))
}

/// A hash of the text that [`is_written_alike`] compares.
fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(&meaningful(text));
    hasher.finish()
}

/// Whether two texts are equal except for the names of values, shardings, locations and white
/// space.
fn is_written_alike(one: &str, other: &str) -> bool {
    meaningful(one) == meaningful(other)
}

/// The bytes of `text` without names of values, `sdy.sharding` attributes, locations and white
/// space; strings are included. A dictionary with only a sharding is left out.
fn meaningful(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut kept: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let is_word_before = at > 0 && is_of_word(bytes[at - 1]);
        let sharding = end_of_sharding(bytes, at).filter(|_| !is_word_before);
        if let Some(end) = sharding {
            let end = skip_space(bytes, end);
            let has_comma_before = kept.last() == Some(&b',');
            if has_comma_before {
                kept.pop();
            }
            at = end + usize::from(!has_comma_before && bytes.get(end) == Some(&b','));
            continue;
        }
        at = match byte {
            b'"' => {
                let end = end_of_string(bytes, at);
                kept.extend(&bytes[at..end]);
                end
            }
            b'%' => end_of_word(bytes, at + 1),
            b'l' if !is_word_before && bytes[at..].starts_with(b"loc(") => {
                end_of_group(bytes, at + 3)
            }
            b'}' if kept.last() == Some(&b'{') => {
                kept.pop();
                at + 1
            }
            _ => {
                if !byte.is_ascii_whitespace() {
                    kept.push(byte);
                }
                at + 1
            }
        };
    }
    kept
}

/// The end of an attribute `sdy.sharding = VALUE` at `at`, if there is one.
fn end_of_sharding(bytes: &[u8], at: usize) -> Option<usize> {
    let name = b"sdy.sharding";
    if !bytes[at..].starts_with(name) {
        return None;
    }
    let equals = skip_space(bytes, at + name.len());
    if bytes.get(equals) != Some(&b'=') {
        return None;
    }
    let end = end_of_word(bytes, skip_space(bytes, equals + 1));
    Some(if bytes.get(end) == Some(&b'<') { end_of_group(bytes, end) } else { end })
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'-' | b'#' | b':')
}

fn end_of_word(bytes: &[u8], at: usize) -> usize {
    at + bytes.iter().skip(at).take_while(|byte| is_of_word(**byte)).count()
}

fn skip_space(bytes: &[u8], at: usize) -> usize {
    at + bytes.iter().skip(at).take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The end of the string that begins at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(&byte) = bytes.get(end) {
        match byte {
            b'"' => return end + 1,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    bytes.len()
}

/// The end of the parentheses or brackets that begin at `at`.
fn end_of_group(bytes: &[u8], at: usize) -> usize {
    let (mut end, mut depth) = (at, 0);
    while let Some(&byte) = bytes.get(end) {
        match byte {
            b'"' => {
                end = end_of_string(bytes, end);
                continue;
            }
            b'(' | b'<' | b'[' | b'{' => depth += 1,
            b')' | b'>' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        end += 1;
        if depth == 0 {
            return end;
        }
    }
    bytes.len()
}

/// For each value of one body the corresponding value of the other.
#[derive(Default)]
struct Values(FxHashMap<ValueId, ValueId>);

impl Values {
    /// Pairs the values of two lists; returns whether their numbers and types are equal.
    fn pair(
        &mut self,
        program: &Program,
        one: impl ExactSizeIterator<Item = ValueId>,
        mut other: impl ExactSizeIterator<Item = ValueId>,
    ) -> bool {
        one.len() == other.len()
            && one.zip(&mut other).all(|(one, other)| {
                self.0.insert(one, other);
                program.type_of(one) == program.type_of(other)
            })
    }
    /// Pairs the arguments of the regions of two ops; returns whether their numbers and types are
    /// equal.
    fn pair_regions(&mut self, program: &Program, one: OpId, other: OpId) -> bool {
        let block = |region: RegionId| program.region_entry(region).get();
        let (mut ones, mut others) = (program.op_regions(one), program.op_regions(other));
        program.num_regions(one) == program.num_regions(other)
            && ones.by_ref().zip(others.by_ref()).all(|(one, other)| {
                match (block(one), block(other)) {
                    (Some(one), Some(other)) => {
                        self.pair(program, program.block_args(one), program.block_args(other))
                    }
                    (one, other) => one == other,
                }
            })
    }
    /// Whether the operands of two ops are paired.
    fn are_used_alike(&self, program: &Program, one: OpId, other: OpId) -> bool {
        program.num_operands(one) == program.num_operands(other)
            && program
                .operands(one)
                .zip(program.operands(other))
                .all(|(one, other)| self.0.get(&one) == Some(&other))
    }
}

#[cfg(test)]
mod tests {
    use super::is_written_alike;

    #[test]
    fn names_of_values_do_not_count() {
        assert!(is_written_alike("%0 = a.b %x, %y#1 : f", "%1:2 = a.b  %2, %3 :\n f"));
        assert!(!is_written_alike("%0 = a.b %x", "%0 = a.c %x"));
        assert!(!is_written_alike(r#"a {b = "1%x\"%"}"#, r#"a {b = "1%x\"%y"}"#));
    }
    #[test]
    fn shardings_and_locations_do_not_count() {
        let sharding = r#"sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {?}]>]>"#;
        let plain = "%0 = a.b %x : f";
        assert!(is_written_alike(&format!("%0 = a.b %x {{{sharding}}} : f"), plain));
        assert!(is_written_alike("%0 = a.b %x {sdy.sharding = #alias } : f loc(#loc3)", plain));
        let own = "%0 = a.b %x {c = {d = 1}, e = 2} : f";
        for place in ["{d = 1, S}, e = 2", "{S, d = 1}, e = 2", "{d = 1}, S, e = 2"] {
            let text = format!("%0 = a.b %x {{c = {}}} : f", place.replace('S', sharding));
            assert!(is_written_alike(&text, own), "{text}");
        }
        assert!(!is_written_alike("%0 = a.b %x {sdy.sharding_rule = #r<1>} : f", plain));
        assert!(!is_written_alike("%0 = a.b %x {c = {d = 1, e = 2}} : f", own));
        assert!(!is_written_alike("a {b = \"sdy.sharding = #s\"}", "a {b = \"\"}"));
    }
}
