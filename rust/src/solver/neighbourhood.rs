//! Chooses the variables that a move frees.

use super::graph::Graph;
use super::random::Random;

/// Chooses variables to free; its buffers are reused.
pub(super) struct Neighbourhoods {
    chosen: Vec<bool>,
    /// The variable of each load.
    owners: Vec<u32>,
}

impl Neighbourhoods {
    pub fn new(graph: &Graph) -> Self {
        let own = |variable: u32| vec![variable; graph.loads(variable).len()];
        let owners = (0..graph.len() as u32).flat_map(own).collect();
        Self { chosen: vec![false; graph.len()], owners }
    }

    /// About `size` variables: balls in the graph around variables that are live at the same time,
    /// or one ball.
    pub fn pick(
        &mut self,
        graph: &Graph,
        size: usize,
        slot: Option<u32>,
        random: &mut Random,
    ) -> Vec<u32> {
        let mut free = Vec::new();
        let slot = slot.or_else(|| {
            let alone = self.owners.is_empty() || random.unit() < 0.4;
            (!alone).then(|| {
                let load = graph.load(random.below(self.owners.len()));
                load.from + random.below((load.to - load.from) as usize) as u32
            })
        });
        let balls = match slot {
            Some(_) => 1 << random.below(6),
            None => 1,
        };
        let each = (size / balls).max(1);
        let mut tries = 0;
        while free.len() < size && tries < 4 * size.max(8) {
            tries += 1;
            let seed = match slot {
                Some(slot) => {
                    let number = random.below(self.owners.len());
                    let load = graph.load(number);
                    if slot < load.from || slot >= load.to {
                        continue;
                    }
                    self.owners[number]
                }
                None => random.below(graph.len()) as u32,
            };
            let most = (free.len() + each).min(size);
            self.grow(graph, seed, most, &mut free, random);
            if slot.is_none() && graph.arcs(seed).len() > 1 && random.unit() < 0.8 {
                break;
            }
        }
        for &variable in &free {
            self.chosen[variable as usize] = false;
        }
        free
    }

    /// Adds a ball around `seed` until `free` has `most` variables.
    fn grow(
        &mut self,
        graph: &Graph,
        seed: u32,
        most: usize,
        free: &mut Vec<u32>,
        random: &mut Random,
    ) {
        let mut next = free.len();
        self.add(seed, free);
        while next < free.len() && free.len() < most {
            let arcs = graph.arcs(free[next]);
            next += 1;
            // Of the neighbours of a hub, start at a random one.
            let first = if arcs.len() > 8 { random.below(arcs.len()) } else { 0 };
            for arc in arcs[first..].iter().chain(&arcs[..first]).take(most - free.len()) {
                self.add(arc.to, free);
            }
        }
    }

    fn add(&mut self, variable: u32, free: &mut Vec<u32>) {
        if !self.chosen[variable as usize] {
            self.chosen[variable as usize] = true;
            free.push(variable);
        }
    }
}
