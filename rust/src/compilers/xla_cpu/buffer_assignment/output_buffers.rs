//! Reuse of output buffers: values of inner blocks that are kept in the buffer of an output before it is written.
//!
//! A result that a branch returns is in the buffer of the output that it becomes. Then the largest values come first, each in the
//! smallest output buffer that has room for it; values of the entry function compete with those of inner blocks by size.
//!
//! Source: XLA's `BufferAssigner`.

use crate::compilers::xla_cpu::buffer_assignment::heap::Temporary;
use crate::compilers::xla_cpu::buffer_assignment::occupied_spans::{Span, Spans};
use std::cmp::Reverse;

/// The most output buffers that are tried for each value.
const MAX_TRIED: usize = 16;

/// A value of the entry function in the buffer of an output.
pub struct Tenant {
    /// Its bytes.
    pub bytes: u128,
    /// The first and the last moment of its live range.
    pub span: (u32, u32),
    /// Whether it owns the buffer: it is the output itself, or an argument that is donated to it.
    pub is_owner: bool,
}

/// The output buffers.
#[derive(Default)]
pub struct Rooms {
    /// The live ranges in each output buffer, by time.
    rooms: Vec<Spans>,
    /// Their indices sorted by size, later ones first.
    by_size: Vec<(u128, Reverse<u32>)>,
    /// The values of the entry function that could use an output buffer, with that buffer.
    tenants: Vec<(Temporary, u32)>,
}

impl Rooms {
    /// Adds an output buffer of so many `bytes`, with the values in it; their live ranges do not overlap, and the last is the
    /// output itself.
    pub fn add(&mut self, bytes: u128, tenants: Vec<Tenant>) {
        let room = self.rooms.len() as u32;
        let mut owners = tenants.iter().filter(|tenant| tenant.is_owner).map(|tenant| Span {
            first: tenant.span.0,
            last: tenant.span.1,
            item: 0,
        });
        let Some(first) = owners.next() else { return };
        let mut spans = Spans::of(first);
        owners.for_each(|span| spans.insert(span));
        self.by_size.push((bytes, Reverse(room)));
        self.rooms.push(spans);
        for Tenant { bytes, span, .. } in tenants.into_iter().filter(|tenant| !tenant.is_owner) {
            if span.0 <= span.1 {
                self.tenants.push((Temporary { bytes, span, shares: None }, room));
            }
        }
    }
    /// Moves temporaries of inner blocks, the first `num_inside` of `heap`, into the output buffers, and returns those that remain.
    /// `given` has the heap indices of branch results with the output that they become.
    pub fn fill(
        mut self,
        heap: Vec<Temporary>,
        num_inside: usize,
        given: &[(u32, u32)],
    ) -> Vec<Temporary> {
        if self.rooms.is_empty() || num_inside == 0 {
            return heap;
        }
        let tenants = std::mem::take(&mut self.tenants);
        self.by_size.sort_unstable();
        // What is in the memory of something else goes with that.
        let (mut head_of, mut spans) = (Vec::with_capacity(num_inside), Vec::new());
        for (temporary, at) in heap[..num_inside].iter().zip(0_u32..) {
            let head = temporary.shares.map_or(at, |old| head_of[old as usize]);
            head_of.push(head);
            spans.push(temporary.span);
            let last = &mut spans[head as usize].1;
            *last = temporary.span.1.max(*last);
        }
        let mut is_placed = vec![false; num_inside];
        for &(at, room) in given {
            let head = head_of[at as usize] as usize;
            is_placed[head] = is_placed[head] || self.put(room, spans[head]);
        }
        let heads = (0..num_inside).filter(|&at| head_of[at] == at as u32 && !is_placed[at]);
        // Of equal size what is in the entry function comes first.
        let mut all: Vec<(u128, bool, usize)> =
            heads.map(|at| (heap[at].bytes, true, at)).collect();
        all.extend(tenants.iter().enumerate().map(|(at, (own, _))| (own.bytes, false, at)));
        all.sort_by_key(|&(bytes, is_inside, _)| (Reverse(bytes), is_inside));
        let mut moved = Vec::new();
        for (bytes, is_inside, at) in all {
            if !is_inside {
                let (own, room) = tenants[at];
                if !self.put(room, own.span) {
                    moved.push(own);
                }
                continue;
            }
            let from = self.by_size.partition_point(|&(room, _)| room < bytes);
            let until = self.by_size.len().min(from + MAX_TRIED);
            is_placed[at] = (from..until).any(|place| {
                let (_, Reverse(room)) = self.by_size[place];
                self.put(room, spans[at])
            });
        }
        let mut places = vec![None; heap.len()];
        let mut left: Vec<Temporary> = Vec::with_capacity(heap.len());
        for (at, temporary) in heap.into_iter().enumerate() {
            if at >= num_inside || !is_placed[head_of[at] as usize] {
                places[at] = Some(left.len() as u32);
                let shares = temporary.shares.and_then(|old| places[old as usize]);
                left.push(Temporary { shares, ..temporary });
            }
        }
        left.extend(moved);
        left
    }
    /// Puts a value that is live from `first` to `last` into the buffer `room`, if that is free.
    fn put(&mut self, room: u32, (first, last): (u32, u32)) -> bool {
        let spans = &mut self.rooms[room as usize];
        let (before, after) = spans.around(first);
        let is_free =
            before.is_none_or(|old| old.last < first) && after.is_none_or(|new| last < new.first);
        if is_free {
            spans.insert(Span { first, last, item: 0 });
        }
        is_free
    }
}
