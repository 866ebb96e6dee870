//! Names of values in the printed text.
//!
//! A value keeps its name in the source text, unless it has none or, after ops were moved or
//! cloned, another visible value has the same name. Then its name is made from its id, with a
//! prefix that does not occur in the source, so that a name never depends on the text printed
//! before.

use crate::index::{OpId, RegionId, ValueId};
use crate::ir::Program;
use crate::mlir::names::{append_fresh, group_number, name_giver, ssa_name_at};
use rustc_hash::FxHashSet;

/// The names of values in one printed text.
pub(super) struct Names {
    /// Values that do not keep their name.
    renamed: FxHashSet<ValueId>,
}

impl Names {
    /// No value is renamed.
    pub fn new(_program: &Program) -> Self {
        Self { renamed: FxHashSet::default() }
    }
    /// Whether any value had to be renamed.
    pub fn has_renamed(&self) -> bool {
        !self.renamed.is_empty()
    }
    /// Whether `value` had to be renamed.
    pub fn is_renamed(&self, value: ValueId) -> bool {
        !self.renamed.is_empty() && self.renamed.contains(&value)
    }
    /// Whether an operand, result or argument of `op` was renamed.
    pub fn is_affected(&self, program: &Program, op: OpId) -> bool {
        if self.renamed.is_empty() {
            return false;
        }
        let args = program.op_regions(op).filter_map(|region| program.region_entry(region).get());
        program.operands(op).any(|value| self.renamed.contains(&value))
            || program.op_results(op).any(|value| self.renamed.contains(&value))
            || args
                .flat_map(|block| program.block_args(block))
                .any(|arg| self.renamed.contains(&arg))
    }
    /// Whether `value` has a name in the text and keeps it.
    pub fn keeps(&self, program: &Program, value: ValueId) -> bool {
        program.printing().has_name(value) && !self.is_renamed(value)
    }
    /// Appends the name of `value`, as an operand.
    pub fn append(&self, program: &Program, value: ValueId, out: &mut String) {
        if self.keeps(program, value) {
            let text = program.text().source();
            out.push_str(ssa_name_at(text, program.printing().value_name(value)));
            if let Some(number) = group_number(program, value) {
                out.push('#');
                out.push_str(&number.to_string());
            }
            return;
        }
        append_fresh(program, value, out);
    }
    /// Finds the values inside `function` that cannot keep their names.
    pub fn enter_function(&mut self, program: &Program, function: OpId) {
        self.renamed.clear();
        if has_foreign_ops(program, function) {
            Collisions { program, names: self, scopes: Vec::new(), seen: FxHashSet::default() }
                .find(function);
        }
    }
}

/// Whether any op inside `function` is not where its text is.
fn has_foreign_ops(program: &Program, function: OpId) -> bool {
    if program.printing().has_moved_ops() {
        return true;
    }
    let span = program.printing().op(function).span;
    let mut last = span.start;
    for op in program.pre_order(function).skip(1) {
        let own = program.printing().op(op).span;
        if own.is_empty() {
            // Results of ops that replaced others have their names.
            let named = program.op_results(op).find(|&value| program.printing().has_name(value));
            let name = named.map(|value| program.printing().value_name(value));
            if has_named_args(program, op)
                || name.is_some_and(|name| name <= last || name >= span.end)
            {
                return true;
            }
            last = name.unwrap_or(last);
            continue;
        }
        if own.start < last || own.end > span.end {
            return true;
        }
        let Some(parent) = program.parent_op(op) else { continue };
        let outer = program.printing().op(parent).span;
        if own.end > outer.end || own.start < outer.start {
            return true;
        }
        last = own.start;
    }
    false
}

/// Whether the regions of `op`, which has no text, have arguments with names from the text.
fn has_named_args(program: &Program, op: OpId) -> bool {
    let blocks = program.op_regions(op).filter_map(|region| program.region_entry(region).get());
    blocks.flat_map(|block| program.block_args(block)).any(|arg| program.printing().has_name(arg))
}

/// The search for values with the same name.
struct Collisions<'a, 'p> {
    program: &'p Program,
    names: &'a mut Names,
    /// The open regions and the names defined in them.
    scopes: Vec<(RegionId, Vec<&'p str>)>,
    /// Visible names.
    seen: FxHashSet<&'p str>,
}

impl Collisions<'_, '_> {
    fn find(&mut self, function: OpId) {
        let ops: Vec<OpId> = self.program.pre_order(function).skip(1).collect();
        for op in ops {
            let region = self.program.block_region(self.program.parent_block(op));
            let owner = self.program.region_op(region);
            let outer = self.program.parent_block(owner);
            let outer = outer.get().map(|block| self.program.block_region(block));
            // Leave the regions that do not hold this op, enter its own.
            while let Some(&(open, _)) = self.scopes.last() {
                if open == region || Some(open) == outer {
                    break;
                }
                self.leave();
            }
            if self.scopes.last().is_none_or(|(open, _)| *open != region) {
                self.scopes.push((region, Vec::new()));
                self.define_args(region);
            }
            self.define_results(op);
        }
    }
    fn leave(&mut self) {
        if let Some((_, names)) = self.scopes.pop() {
            for name in names {
                self.seen.remove(name);
            }
        }
    }
    fn define_args(&mut self, region: RegionId) {
        for block in self.program.region_blocks(region) {
            for arg in self.program.block_args(block) {
                if self.names.renamed.contains(&name_giver(self.program, arg)) {
                    self.names.renamed.insert(arg);
                } else {
                    self.define(arg, &[arg]);
                }
            }
        }
    }
    fn define_results(&mut self, op: OpId) {
        let results: Vec<ValueId> = self.program.op_results(op).collect();
        let mut at = 0;
        while at < results.len() {
            let name = self.program.printing().value_name(results[at]);
            let group = results[at..]
                .iter()
                .take_while(|&&value| self.program.printing().value_name(value) == name)
                .count();
            // Results of an op share one name: if it is taken, all of them are renamed.
            if self.define(results[at], &results) {
                return;
            }
            at += group;
        }
    }
    /// Records the name of `value`; if the name is taken, renames `group` and returns true.
    fn define(&mut self, value: ValueId, group: &[ValueId]) -> bool {
        let offset = self.program.printing().value_name(value);
        if offset == u32::MAX {
            return false;
        }
        let name = ssa_name_at(self.program.text().source(), offset);
        if !self.seen.insert(name) {
            self.names.renamed.extend(group);
            return true;
        }
        if let Some((_, names)) = self.scopes.last_mut() {
            names.push(name);
        }
        false
    }
}
