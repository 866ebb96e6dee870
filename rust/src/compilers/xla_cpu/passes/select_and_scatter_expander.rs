//! The expansion of a `select_and_scatter`, the gradient of a max-pool, on CPUs.
//!
//! A reduce-window finds the index of the selected element of each window: it reads the indices of all elements (an iota for each
//! dim), and writes as many arrays of the selected indices. These are concatenated, and a scatter adds the gradients there.
//!
//! Source: XLA's `SelectAndScatterExpander`.

use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::{Read, NONE};
use crate::index::{Id, OpId, ValueId};

/// The bytes of an index along one dim.
const PLACE_BYTES: u128 = 4;

impl Builder<'_, '_, '_> {
    /// Adds the kernels of `op`, a `select_and_scatter`.
    pub(in crate::compilers::xla_cpu) fn add_pool(&mut self, op: OpId) {
        let program = self.program;
        let result = program.result(op, 0);
        let (value, source) = (program.operand(op, 0), program.operand(op, 1));
        let rank = self.works.tensors.of(value).dims.as_deref().map_or(0, <[i64]>::len);
        let found = self.works.tensors.of(source).elements.saturating_mul(PLACE_BYTES);
        let window = self.kernel(op, false, false);
        self.read(window, self.item(value));
        for item in self.places_of(op, value, rank) {
            self.read(window, item);
        }
        let bytes = self.bytes(source);
        let _ = self.make_apart(value, bytes, window);
        let each: Vec<u32> = (0..rank).map(|_| self.make_apart(value, found, window)).collect();
        let joins = self.kernel(op, false, false);
        for item in each {
            self.read(joins, item);
        }
        let joined = self.make_apart(value, found.saturating_mul(rank as u128), joins);
        let fills = self.kernel(op, false, false);
        let bytes = self.bytes(result);
        let filled = self.make_apart(result, bytes, fills);
        let kernel = self.kernel(op, false, true);
        self.graph.ops.push((op, kernel));
        for item in [filled, joined, self.item(source)] {
            self.read(kernel, item);
        }
        let item = self.make(result, bytes, kernel);
        self.graph.items[item as usize].over = filled;
    }
    /// The iotas with the indices of the elements of `value`, one item for each of `rank` dims; values of the same type share them.
    fn places_of(&mut self, op: OpId, value: ValueId, rank: usize) -> Vec<u32> {
        let ty = self.program.type_of(value);
        if let Some(known) = self.places.get(&ty) {
            return known.clone();
        }
        let bytes = self.works.tensors.of(value).elements.saturating_mul(PLACE_BYTES);
        let mut made = Vec::with_capacity(rank);
        for _ in 0..rank {
            let kernel = self.kernel(op, false, false);
            made.push(self.make_apart(value, bytes, kernel));
        }
        self.places.insert(ty, made.clone());
        made
    }
    /// Makes an item that is attributed to `value` but does not hold it.
    fn make_apart(&mut self, value: ValueId, bytes: u128, kernel: u32) -> u32 {
        let own = self.items[value.index()];
        let item = self.make(value, bytes, kernel);
        self.items[value.index()] = own;
        item
    }
    fn read(&mut self, kernel: u32, item: u32) {
        if item != NONE {
            self.reads.push((kernel, Read::whole(item)));
        }
    }
}
