//! The buffers of a block: which are live after each op.

use crate::index::{Id, ValueId};
use rustc_hash::FxHashMap;

/// No buffer, or the end of a list.
const NONE: u32 = u32::MAX;

/// The index of the buffer that each value of a program is in, while its block is simulated.
pub(crate) struct Places(Vec<u32>);

impl Places {
    /// For `count` values, none of which is in a buffer.
    pub fn new(count: usize) -> Self {
        Self(vec![NONE; count])
    }
    fn get(&self, value: ValueId) -> Option<usize> {
        let index = self.0[value.index()];
        (index != NONE).then_some(index as usize)
    }
    fn set(&mut self, value: ValueId, index: usize) {
        self.0[value.index()] = index as u32;
    }
    fn remove(&mut self, value: ValueId) -> Option<usize> {
        let index = self.get(value);
        self.0[value.index()] = NONE;
        index
    }
}

/// A buffer: the value in it, its bytes, and the position of its last use.
type Buffer = (ValueId, u128, u32);

/// The state of the simulation of a block.
pub(crate) struct Run {
    pub now: u128,
    /// Bytes of the results of the current op.
    pub made: u128,
    /// Buffers in the order of their allocation.
    buffers: Vec<Buffer>,
    /// For each position the first entry of `listed` for buffers that end there.
    ends: Vec<u32>,
    /// Linked lists of buffers that end at the same position. A buffer is listed again when its last use moves.
    listed: Vec<(u32, u32)>,
    /// Outputs, each with the donated argument whose buffer it may take.
    pub taking_over: FxHashMap<ValueId, ValueId>,
}

impl Run {
    /// For a block of `count` ops, whose positions start at 1.
    pub fn new(count: usize) -> Self {
        Self {
            now: 0,
            made: 0,
            buffers: Vec::new(),
            ends: vec![NONE; count + 1],
            listed: Vec::new(),
            taking_over: FxHashMap::default(),
        }
    }
    /// Lists a buffer at the position of its last use; buffers that outlive the block are not listed.
    fn list(&mut self, index: usize) {
        let last = self.buffers[index].2;
        if let Some(first) = self.ends.get_mut(last as usize) {
            self.listed.push((index as u32, *first));
            *first = self.listed.len() as u32 - 1;
        }
    }
    pub fn make(
        &mut self,
        places: &mut Places,
        value: ValueId,
        bytes: u128,
        (last, place): (u32, u32),
    ) {
        let index = self.buffers.len();
        // A result without uses is freed after its op.
        self.buffers.push((value, bytes, last.max(place)));
        places.set(value, index);
        self.list(index);
        self.now = self.now.saturating_add(bytes);
        self.made = self.made.saturating_add(bytes);
    }
    /// Whether the buffer of `value` has `bytes`, and its live range ends by `place`.
    pub fn can_reuse(&self, places: &Places, value: ValueId, bytes: u128, place: u32) -> bool {
        // The value may be in a buffer of an enclosing block.
        let buffer = places.get(value).and_then(|index| self.buffers.get(index));
        buffer == Some(&(value, bytes, place))
    }
    /// Gives `new` the buffer of `old`.
    pub fn rename(&mut self, places: &mut Places, old: ValueId, new: ValueId, last: u32) {
        let Some(index) = places.remove(old) else { return };
        let buffer = &mut self.buffers[index];
        let moves = last > buffer.2;
        (buffer.0, buffer.2) = (new, last.max(buffer.2));
        places.set(new, index);
        if moves {
            self.list(index);
        }
    }
    /// Frees the buffers whose last use is at `place`.
    pub fn free(&mut self, places: &mut Places, place: u32) {
        let mut at = self.ends[place as usize];
        while at != NONE {
            let (index, next) = self.listed[at as usize];
            let (value, bytes, last) = self.buffers[index as usize];
            if last == place && places.remove(value).is_some() {
                self.now = self.now.saturating_sub(bytes);
            }
            at = next;
        }
    }
    /// Ends the simulation: no value is in a buffer any more.
    pub fn finish(self, places: &mut Places) {
        for (value, ..) in self.buffers {
            places.remove(value);
        }
    }
}
