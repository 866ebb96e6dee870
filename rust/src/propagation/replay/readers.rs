//! The readers of each sharding: the visits whose result may change if the sharding does.
//!
//! A *reader* is an op by its position, or, numbered after all ops, a result of the main function by its index.

use super::slots;
use crate::index::{FuncId, Id, ValueId};
use crate::propagation::notices::{self, Action, Notice};
use crate::propagation::observe::Slot;
use crate::propagation::state::State;
use std::ops::Range;

/// The readers of all slots.
#[derive(Clone)]
pub struct SlotReaders {
    num_ops: u32,
    num_values: usize,
    main: FuncId,
    /// The value that holds the sharding of each returned value, and the index of the result;
    /// sorted.
    returned: Vec<(ValueId, u32)>,
    notices: Vec<Notice>,
    /// The readers of slots that were requested, one slot after the other. They depend on the
    /// program only, not on its shardings.
    lists: Vec<u32>,
    /// For each slot the range of its readers in `lists`.
    ranges: Vec<(u32, u32)>,
}

/// The range of a slot that was not requested yet.
const NOT_ASKED: (u32, u32) = (u32::MAX, 0);

impl SlotReaders {
    /// The readers in the program of `state`, whose main function has `num_results` results and
    /// returns `returned`.
    pub fn new(state: &State<'_>, main: FuncId, num_results: usize, returned: &[ValueId]) -> Self {
        let holder = |value: ValueId| state.plan.edges.holder_of(value);
        let returned = returned.iter().zip(0..);
        let mut returned: Vec<(ValueId, u32)> =
            returned.filter_map(|(&value, index)| Some((holder(value)?, index))).collect();
        returned.sort_unstable();
        let num_values = state.program().num_value_ids();
        Self {
            num_ops: state.plan.order().len() as u32,
            num_values,
            main,
            returned,
            notices: Vec::new(),
            lists: Vec::new(),
            ranges: vec![NOT_ASKED; num_values + num_results],
        }
    }
    /// The slot with this number.
    #[inline]
    pub fn slot(&self, number: u32) -> Slot {
        slots::slot(number, self.num_values, self.main)
    }
    /// The number of the reader that is the result of the main function at `index`.
    pub fn of_result(&self, index: u32) -> u32 {
        self.num_ops + index
    }
    /// The index of the main function's result that `reader` stands for; `None` for an op.
    #[inline]
    pub fn result(&self, reader: u32) -> Option<u32> {
        reader.checked_sub(self.num_ops)
    }
    /// The number of readers.
    pub fn len(&self, num_results: usize) -> usize {
        self.num_ops as usize + num_results
    }
    /// The range of the readers of slot `number`, for [`SlotReaders::at`].
    #[inline]
    pub fn list(&mut self, state: &State<'_>, number: u32) -> Range<usize> {
        if self.ranges[number as usize] == NOT_ASKED {
            self.add(state, number);
        }
        let (first, end) = self.ranges[number as usize];
        first as usize..end as usize
    }
    /// The readers in this range, each once.
    #[inline]
    pub fn at(&self, range: Range<usize>) -> &[u32] {
        &self.lists[range]
    }
    #[cold]
    fn add(&mut self, state: &State<'_>, number: u32) {
        let first = self.lists.len();
        match self.slot(number) {
            Slot::Value(value) => self.add_list(state, value),
            Slot::FuncResult(_, index) => self.lists.push(self.of_result(index as u32)),
        }
        let mut readers = self.lists.split_off(first);
        readers.sort_unstable();
        readers.dedup();
        self.lists.append(&mut readers);
        self.ranges[number as usize] = (first as u32, self.lists.len() as u32);
    }
    /// Appends the readers of `value`.
    fn add_list(&mut self, state: &State<'_>, value: ValueId) {
        if !state.plan.has_siblings.contains(value) {
            return self.add_list_of_value(state, value);
        }
        // The results of an op get their first shardings together, so a change of one reads the
        // others.
        for sibling in state.program().siblings(value) {
            self.add_list_of_value(state, ValueId::from_index(sibling));
        }
    }
    fn add_list_of_value(&mut self, state: &State<'_>, value: ValueId) {
        let out = &mut self.lists;
        notices::list(state.program(), &state.plan, value, &mut self.notices);
        let reads = |notice: &&Notice| matches!(notice.action, Action::MarkAndQueue | Action::Mark);
        out.extend(self.notices.iter().filter(reads).map(|notice| notice.position));
        let start = self.returned.partition_point(|&(held, _)| held < value);
        let returned = self.returned[start..].iter().take_while(|&&(held, _)| held == value);
        out.extend(returned.map(|&(_, index)| self.num_ops + index));
    }
}
