//! Ops that read many shardings, and which of these have changed since the op's last visit.
//!
//! Without this list, an op with thousands of tensors, or a function that returns thousands of
//! values, would compare all of them to find the one that changed.

use crate::index::{FuncId, Id, ValueId};

/// For each value, the tensors of readers whose sharding it holds.
#[derive(Default)]
pub struct Readers {
    /// For each value one more than the index of its last row; 0 if it has none.
    last: Vec<u32>,
    rows: Vec<Row>,
    /// A function whose results are tensors of a reader, by their indices, and that reader.
    func_results: Option<(FuncId, u32)>,
    /// For each reader the tensors whose shardings have changed since [`Readers::changed`].
    changed: Vec<Vec<u32>>,
}

#[derive(Clone, Copy)]
struct Row {
    reader: u32,
    tensor: u32,
    /// One more than the index of the next row for the same value; 0 if there is none.
    next: u32,
}

impl Readers {
    /// Adds a reader with a tensor for each item of `kept`: the value that holds its sharding, or
    /// `None` if the tensor has none. Returns the index of the reader. All of its tensors count as
    /// changed.
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
    /// Records that the sharding that `value` holds has changed.
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
    /// Adds the results of `func` to what `reader` reads, each as the tensor of the same index.
    pub fn add_func_results(&mut self, reader: usize, func: FuncId) {
        self.func_results = Some((func, reader as u32));
    }
    /// Records that the sharding of result `index` of `func` has changed.
    pub fn func_result_changed(&mut self, func: FuncId, index: usize) {
        match self.func_results {
            Some((read, reader)) if read == func => {
                self.changed[reader as usize].push(index as u32);
            }
            _ => {}
        }
    }
    /// The tensors of `reader` that have changed; some may be repeated.
    pub fn changed(&mut self, reader: usize) -> std::vec::Drain<'_, u32> {
        self.changed[reader].drain(..)
    }
}
