//! Who reads many shardings: what has changed of them since the last look.
//!
//! An op with thousands of tensors, or a function that returns thousands of values, must not look at
//! all of them to find the one that changed.

use crate::index::{Id, ValueId};

/// Which tensors of which readers have the sharding that is kept on a value.
#[derive(Default)]
pub struct Readers {
    /// By value: one more than the row of the last one.
    last: Vec<u32>,
    rows: Vec<Row>,
    /// For each reader the tensors whose shardings have changed since they were last taken.
    changed: Vec<Vec<u32>>,
}

#[derive(Clone, Copy)]
struct Row {
    reader: u32,
    tensor: u32,
    /// One more than the row of the next one that reads the same value.
    next: u32,
}

impl Readers {
    /// Adds a reader of tensors, of which these values keep the shardings; `None` is not read. Returns
    /// its number. All of its tensors count as changed.
    pub fn add(&mut self, kept: impl Iterator<Item = Option<ValueId>>) -> usize {
        let reader = self.changed.len();
        let mut num_tensors = 0;
        for kept in kept {
            if let Some(value) = kept {
                self.add_row(value, reader as u32, num_tensors);
            }
            num_tensors += 1;
        }
        self.changed.push((0..num_tensors).collect());
        reader
    }

    fn add_row(&mut self, value: ValueId, reader: u32, tensor: u32) {
        if self.last.len() <= value.index() {
            self.last.resize(value.index() + 1, 0);
        }
        self.rows.push(Row { reader, tensor, next: self.last[value.index()] });
        self.last[value.index()] = self.rows.len() as u32;
    }
    /// The sharding that is kept on `value` has changed.
    #[inline]
    pub fn value_changed(&mut self, value: ValueId) {
        if self.rows.is_empty() {
            return;
        }
        let mut next = self.last.get(value.index()).copied().unwrap_or(0);
        while let Some(row) = (next as usize).checked_sub(1).map(|row| self.rows[row]) {
            self.changed[row.reader as usize].push(row.tensor);
            next = row.next;
        }
    }
    /// One tensor of `reader` has changed.
    pub fn tensor_changed(&mut self, reader: usize, tensor: u32) {
        self.changed[reader].push(tensor);
    }
    /// The tensors of `reader` that have changed, some of them twice.
    pub fn changed(&mut self, reader: usize) -> std::vec::Drain<'_, u32> {
        self.changed[reader].drain(..)
    }
}
