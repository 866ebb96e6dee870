//! The bytes that are live while kernels are placed from the last to the first.
//!
//! Source: XLA's `MemoryPressureTracker`.

use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};

/// A part of a kernel: all of it or the start of a collective, or what awaits the collective that it starts.
#[derive(Clone, Copy)]
pub enum Part {
    /// All of this kernel, or its start.
    Kernel(u32),
    /// What awaits this kernel.
    End(u32),
}

/// What is live of the items of a block.
pub struct MemoryPressure<'g> {
    graph: &'g Graph,
    is_live: Vec<bool>,
    live: u128,
    /// The most bytes that may be live.
    limit: u128,
}

impl<'g> MemoryPressure<'g> {
    /// Nothing is live.
    pub fn new(graph: &'g Graph, limit: u128) -> Self {
        Self { graph, is_live: vec![false; graph.items.len()], live: 0, limit }
    }
    /// Whether so much is live that what is placed next depends on it.
    pub const fn is_high(&self) -> bool {
        self.live > self.limit / 2
    }
    /// What it does to memory to place `part` next: how much less is live after it if too much is live already, and whether at most
    /// as much is live as may be. More is better. What awaits a collective may be placed together with the start of that.
    pub fn relief(&self, part: Part) -> (i128, bool) {
        let (mut growth, mut most) = self.change(part);
        if let Part::End(kernel) = part {
            let start = self.change(Part::Kernel(kernel));
            (growth, most) = (growth.min(start.0), most.max(start.1));
        }
        let relief = if self.live >= self.limit { growth.saturating_neg() } else { 0 };
        (relief, self.live.saturating_add(most) <= self.limit)
    }
    /// The bytes by which more is live before `part` than is live now, and by which more is live while it runs.
    pub fn change(&self, part: Part) -> (i128, u128) {
        let mut more: u128 = 0;
        for read in self.graph.reads(part.kernel()) {
            let item = self.graph.stored_as(read.item) as usize;
            if !self.is_live[item] {
                more = more.saturating_add(self.graph.items[item].bytes);
            }
        }
        let less: u128 = self.ended(part).map(|item| self.graph.items[item as usize].bytes).sum();
        let [plus, minus] = [more, less].map(|bytes| i128::try_from(bytes).unwrap_or(i128::MAX));
        (plus.saturating_sub(minus), more)
    }
    /// Places `part`.
    pub fn place(&mut self, part: Part) {
        let graph = self.graph;
        for read in graph.reads(part.kernel()) {
            let item = graph.stored_as(read.item) as usize;
            if !std::mem::replace(&mut self.is_live[item], true) {
                self.live = self.live.saturating_add(graph.items[item].bytes);
            }
        }
        let ended: Vec<u32> = self.ended(part).collect();
        for item in ended {
            self.is_live[item as usize] = false;
            self.live = self.live.saturating_sub(graph.items[item as usize].bytes);
        }
    }
    /// The items that are live and that `part` makes.
    fn ended(&self, part: Part) -> impl Iterator<Item = u32> + '_ {
        let made = match part {
            Part::Kernel(kernel) => self.graph.makes(kernel),
            Part::End(_) => &[],
        };
        let is_live = |&&item: &&u32| {
            self.graph.items[item as usize].name_of == NONE && self.is_live[item as usize]
        };
        made.iter().filter(is_live).copied()
    }
}

impl Part {
    const fn kernel(self) -> u32 {
        match self {
            Self::Kernel(kernel) | Self::End(kernel) => kernel,
        }
    }
}
