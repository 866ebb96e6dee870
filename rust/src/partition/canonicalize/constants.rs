//! Merges equal constants, and hoists them to the start of their scope.

use crate::index::{BlockId, Id, OpId, RegionId, StrId, TypeId};
use crate::ir::{OpKind, OpTraits, Place, Program};
use rustc_hash::FxHashMap;

/// The scope of a constant, its op's name, its type, and the hash of its value.
type Key = (RegionId, StrId, TypeId, u64);

/// The constants that were merged or hoisted so far, as in MLIR's operation folder.
#[derive(Default)]
pub struct Constants {
    kept: FxHashMap<Key, Vec<OpId>>,
    is_owned: Vec<bool>,
}

impl Constants {
    /// Whether `op` is a constant that can be folded.
    pub fn is_constant(program: &Program, op: OpId) -> bool {
        program.kind(op) != OpKind::SdyConstant && program.has_traits(op, OpTraits::CONSTANT_LIKE)
    }
    fn owns(&self, op: OpId) -> bool {
        op.is_some() && self.is_owned.get(op.index()).copied().unwrap_or(false)
    }
    /// Removes `op`, which will be erased.
    pub fn forget(&mut self, program: &Program, op: OpId) {
        if self.owns(op) {
            self.is_owned[op.index()] = false;
            let region = scope(program, program.parent_block(op));
            if let Some(kept) = self.kept.get_mut(&key(program, region, op)) {
                kept.retain(|&other| other != op);
            }
        }
    }
    /// Moves `op` to the start of its block if other ops were inserted before it. Returns whether
    /// `op` is one of these constants; then it needs no folding.
    pub fn rehoist(&self, program: &mut Program, op: OpId) -> bool {
        if !self.owns(op) {
            return false;
        }
        self.hoist(program, op, program.parent_block(op));
        true
    }
    fn hoist(&self, program: &mut Program, op: OpId, block: BlockId) {
        let prev = program.prev_op(op);
        if program.parent_block(op) != block || (prev.is_some() && !self.owns(prev)) {
            program.move_op(op, Place::Start(block));
        }
    }
    /// Adds `op`, a constant: merges it into an equal one in its scope, or hoists it. Returns false
    /// if it was merged and erased.
    pub fn insert(&mut self, program: &mut Program, op: OpId) -> bool {
        let block = program.parent_block(op);
        let region = scope(program, block);
        let kept = self.kept.entry(key(program, region, op)).or_default();
        let is_equal = |kept: &&OpId| program.constant_value(**kept) == program.constant_value(op);
        if let Some(&kept) = kept.iter().find(is_equal) {
            program.forget_loc(kept);
            program.replace_all_uses(program.result(op, 0), program.result(kept, 0));
            program.erase_op(op);
            return false;
        }
        kept.push(op);
        let start = program.region_entry(region);
        if start != block {
            program.forget_loc(op);
        }
        self.hoist(program, op, start);
        if self.is_owned.len() <= op.index() {
            self.is_owned.resize(program.num_op_ids(), false);
        }
        self.is_owned[op.index()] = true;
        true
    }
}

fn key(program: &Program, region: RegionId, op: OpId) -> Key {
    let ty = program.type_of(program.result(op, 0));
    (region, program.op_name_id(op), ty, program.constant_hash(op))
}

/// The innermost region around `block` whose op is isolated from above, or may be.
fn scope(program: &Program, block: BlockId) -> RegionId {
    let mut region = program.block_region(block);
    loop {
        let op = program.region_op(region);
        let is_isolated = program.traits(op).is_none_or(|known| known.has(OpTraits::ISOLATED));
        match program.parent_block(op).get() {
            Some(outer) if !is_isolated => region = program.block_region(outer),
            _ => return region,
        }
    }
}
