//! The buffers of a block: which are live after each op.

use super::memory::Live;
use crate::index::ValueId;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The state of a run through a block.
#[derive(Default)]
pub(super) struct Run {
    pub now: u128,
    /// Bytes of the results of the current op.
    pub made: u128,
    /// Buffers in the order of their allocation: value, bytes, position of the last use.
    buffers: Vec<(ValueId, u128, u32)>,
    /// The buffer that a value is in.
    places: FxHashMap<ValueId, usize>,
    /// Buffers by the position of their last use; a buffer whose last use has moved is listed again.
    ends: BinaryHeap<Reverse<(u32, usize)>>,
    /// Outputs, and the arguments whose memory they may take.
    pub taking_over: FxHashMap<ValueId, ValueId>,
}

impl Run {
    pub fn make(&mut self, value: ValueId, bytes: u128, last: u32, place: u32) {
        let index = self.buffers.len();
        // A result without uses is freed after its op.
        let last = last.max(place);
        self.buffers.push((value, bytes, last));
        self.places.insert(value, index);
        self.ends.push(Reverse((last, index)));
        self.now = self.now.saturating_add(bytes);
        self.made = self.made.saturating_add(bytes);
    }
    /// Whether the buffer of `value` has room for `bytes` and is not needed after `place`.
    pub fn can_reuse(&self, value: ValueId, bytes: u128, place: u32) -> bool {
        let buffer = self.places.get(&value).map(|&index| self.buffers[index]);
        buffer.is_some_and(|(_, size, last)| size == bytes && last == place)
    }
    /// Gives `new` the buffer of `old`.
    pub fn rename(&mut self, old: ValueId, new: ValueId, last: u32) {
        let Some(index) = self.places.remove(&old) else { return };
        let buffer = &mut self.buffers[index];
        (buffer.0, buffer.2) = (new, last.max(buffer.2));
        self.places.insert(new, index);
        self.ends.push(Reverse((self.buffers[index].2, index)));
    }
    /// Frees the buffers whose last use is at `place`.
    pub fn free(&mut self, place: u32) {
        while let Some(&Reverse((last, index))) = self.ends.peek() {
            if last > place {
                break;
            }
            self.ends.pop();
            let (value, bytes, current) = self.buffers[index];
            if current == last && self.places.remove(&value).is_some() {
                self.now = self.now.saturating_sub(bytes);
            }
        }
    }
    pub fn live(&self) -> Vec<Live> {
        let is_live = |(index, &(value, bytes, _)): (usize, &(ValueId, u128, u32))| {
            (self.places.get(&value) == Some(&index)).then_some(Live { value, bytes })
        };
        self.buffers.iter().enumerate().filter_map(is_live).collect()
    }
}
