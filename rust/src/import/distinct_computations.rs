//! Gives named computations of the input names that tell them apart.
//!
//! The export takes computations of one name for clones of one function, and makes all calls call one of them. Those
//! that passes make of calls are clones; those of the input need not be.

use crate::index::{FuncId, OpId, RegionId, StrId, ValueId};
use crate::ir::{OpKind, Payload, Program, SymbolTable};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::Hasher;

/// Renames each named computation whose name a function has, or an earlier one with another body.
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
    // The computations that differ, with the names that they got, by name and by a hash of the text of the body.
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

/// Whether two ops of bodies of equal text are the same but for their operands and types. Passes have cloned
/// constants, whose text is that of the original.
fn is_same_op(program: &Program, one: OpId, other: OpId) -> bool {
    let written = |op| program.text().get(program.printing().op(op).span);
    program.op_name_id(one) == program.op_name_id(other)
        && program.payload(one) == program.payload(other)
        && (program.num_regions(one) > 0 || is_written_alike(written(one), written(other)))
}

/// The text of the body of a named computation; none of one that a pass made.
fn body_text(program: &Program, op: OpId) -> &str {
    program.text().get(program.printing().region_span(program.region(op, 0)))
}

/// A hash of what [`is_written_alike`] compares.
fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    meaningful(text).for_each(|byte| hasher.write_u8(byte));
    hasher.finish()
}

/// Whether two texts are equal but for the names of values and white space.
fn is_written_alike(one: &str, other: &str) -> bool {
    meaningful(one).eq(meaningful(other))
}

/// The bytes of `text` outside of names of values and white space; strings are whole.
fn meaningful(text: &str) -> impl Iterator<Item = u8> + '_ {
    let (mut in_string, mut is_escaped, mut in_name) = (false, false, false);
    text.bytes().filter(move |&byte| {
        if in_string {
            in_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
            return true;
        }
        in_name = byte == b'%'
            || (in_name && (byte.is_ascii_alphanumeric() || b"_$.-#:".contains(&byte)));
        in_string = byte == b'"';
        !in_name && !byte.is_ascii_whitespace()
    })
}

/// For each value of one body the value of the other that is in its place.
#[derive(Default)]
struct Values(FxHashMap<ValueId, ValueId>);

impl Values {
    /// Pairs the values of two lists; whether there are as many of the same types.
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
    /// Pairs the arguments of the regions of two ops; whether there are as many of the same types.
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
    /// Whether two ops use values that are paired. Named computations use no others.
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
}
