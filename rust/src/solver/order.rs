//! The elimination order of free variables, and the choice of those that are not eliminated.
//!
//! To eliminate a variable, a table of its best cost for each choice of its neighbours is computed,
//! which makes them neighbours of each other. The variable with the smallest table is eliminated
//! first. If every table would be too large, a variable with many neighbours is fixed: it keeps its
//! value, and becomes a constant cost for the others. A variable without neighbours needs no table,
//! and is always eliminated.

use super::graph::Graph;
use super::random::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The variable is not free.
const OUTSIDE: u32 = u32::MAX;

/// Finds orders; its buffers are reused.
pub(super) struct Orders {
    /// The index of each variable of the graph among the free ones.
    place: Vec<u32>,
    neighbours: Vec<Vec<u32>>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    size: Vec<u64>,
    state: Vec<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waits,
    Eliminated,
    CacheSlot,
}

impl Orders {
    pub fn new(graph: &Graph) -> Self {
        Self {
            place: vec![OUTSIDE; graph.len()],
            neighbours: Vec::new(),
            heap: BinaryHeap::new(),
            size: Vec::new(),
            state: Vec::new(),
        }
    }

    /// The variables of `free` that are eliminated, in order, with tables of at most `largest`
    /// entries.
    pub fn order(
        &mut self,
        graph: &Graph,
        free: &[u32],
        largest: u64,
        random: &mut Random,
    ) -> Vec<u32> {
        self.start(graph, free);
        let mut order = Vec::with_capacity(free.len());
        while let Some(Reverse((size, place))) = self.heap.pop() {
            if self.state[place as usize] != State::Waits || size != self.size[place as usize] {
                continue;
            }
            if size > largest && !self.neighbours[place as usize].is_empty() {
                let kept = self.busiest(graph, free, random);
                self.take_out(graph, free, kept, State::CacheSlot);
                self.heap.push(Reverse((self.size[place as usize], place)));
                continue;
            }
            order.push(free[place as usize]);
            self.take_out(graph, free, place, State::Eliminated);
        }
        for &variable in free {
            self.place[variable as usize] = OUTSIDE;
        }
        order
    }

    fn start(&mut self, graph: &Graph, free: &[u32]) {
        for (place, &variable) in free.iter().enumerate() {
            self.place[variable as usize] = place as u32;
        }
        if self.neighbours.len() < free.len() {
            self.neighbours.resize_with(free.len(), Vec::new);
        }
        self.state.clear();
        self.state.resize(free.len(), State::Waits);
        self.size.clear();
        self.heap.clear();
        for (place, &variable) in free.iter().enumerate() {
            let near = &mut self.neighbours[place];
            near.clear();
            let places = graph.arcs(variable).iter().map(|arc| self.place[arc.to as usize]);
            near.extend(places.filter(|&place| place != OUTSIDE));
            near.sort_unstable();
            let size = table_size(graph, free, variable, near);
            self.size.push(size);
            self.heap.push(Reverse((size, place as u32)));
        }
    }

    /// A variable to fix: one with many neighbours, chosen at random.
    fn busiest(&self, graph: &Graph, free: &[u32], random: &mut Random) -> u32 {
        let mut best = (-1.0, 0);
        for (place, &variable) in free.iter().enumerate() {
            if self.state[place] == State::Waits && !self.neighbours[place].is_empty() {
                let size = f64::from(graph.sizes[variable as usize]);
                let weight = self.neighbours[place].len() as f64 * size.ln();
                let score = weight * (0.5 + random.unit());
                if score > best.0 {
                    best = (score, place as u32);
                }
            }
        }
        best.1
    }

    fn take_out(&mut self, graph: &Graph, free: &[u32], place: u32, state: State) {
        self.state[place as usize] = state;
        let near = std::mem::take(&mut self.neighbours[place as usize]);
        for &other in &near {
            let mut list = std::mem::take(&mut self.neighbours[other as usize]);
            if let Ok(at) = list.binary_search(&place) {
                list.remove(at);
            }
            if state == State::Eliminated && near.len() > 1 {
                for &third in near.iter().filter(|&&third| third != other) {
                    if let Err(at) = list.binary_search(&third) {
                        list.insert(at, third);
                    }
                }
            }
            let size = table_size(graph, free, free[other as usize], &list);
            if size != self.size[other as usize] {
                self.size[other as usize] = size;
                self.heap.push(Reverse((size, other)));
            }
            self.neighbours[other as usize] = list;
        }
        self.neighbours[place as usize] = near;
    }
}

fn table_size(graph: &Graph, free: &[u32], variable: u32, near: &[u32]) -> u64 {
    let own = u64::from(graph.sizes[variable as usize]);
    let sizes = near.iter().map(|&place| u64::from(graph.sizes[free[place as usize] as usize]));
    sizes.fold(own, u64::saturating_mul)
}
