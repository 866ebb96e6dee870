//! The queue of producers: which one is fused next, and what that changes around it.

use super::expression::{Use, NONE};
use super::known_kernels::{Fusing, KnownKernels, Operand, Outcome};
use super::node::{Kind, Node};
use super::performance_model::LAUNCH;
use crate::work::seconds::Seconds;
use std::collections::BinaryHeap;

/// Producers by priority: the seconds that fusing them saves.
pub struct Queue<'k> {
    nodes: Vec<Node>,
    known: &'k mut KnownKernels,
    /// The kernels of nodes that may be fused, or that fuse others.
    kernels: Vec<Kernel>,
    /// Producers with each priority that they had; entries with former ones are skipped.
    queued: BinaryHeap<(Seconds, u32)>,
    /// The priority with which each node is in the queue.
    priorities: Vec<Option<Seconds>>,
    /// The users that take the current producer, and the nodes whose priorities may have changed; fields to reuse their memory.
    taking: Vec<u32>,
    touched: Vec<u32>,
}

/// The kernel of a node.
struct Kernel {
    kind: Kind,
    /// Whether it is written in any case, as a kernel that fuses with nothing reads it.
    is_kept: bool,
    /// What it is by its content.
    id: u32,
    operands: Vec<Operand>,
    /// The sum of what its users would save, and the number of users into which it can be fused.
    saved: f64,
    num_taking: u32,
    /// The number of users that are bitcasts.
    num_names: u32,
}

impl Kernel {
    fn of(nodes: &[Node], at: u32, known: &mut KnownKernels) -> Self {
        let node = &nodes[at as usize];
        let (id, operands) = (NONE, Vec::new());
        let (kind, is_kept, saved) = (Kind::Apart, true, 0.0);
        let mut made = Self { kind, is_kept, id, operands, saved, num_taking: 0, num_names: 0 };
        if node.is_gone || !matches!(node.kind, Kind::Bitcast | Kind::Fusible) {
            return made;
        }
        (made.kind, made.is_kept, made.id) = (node.kind, false, known.kernel(nodes, at));
        let operand = |used: &Use| Operand::new(used.node);
        made.operands = node.expression.uses.iter().map(operand).collect();
        for &user in node.users.iter() {
            match nodes[user as usize].kind {
                Kind::Bitcast => made.num_names += 1,
                Kind::Fusible => {}
                Kind::Outside | Kind::Apart => made.is_kept |= node.kind == Kind::Fusible,
            }
        }
        made
    }
}

impl<'k> Queue<'k> {
    /// Fuses producers as long as that saves time.
    pub fn run(nodes: Vec<Node>, known: &'k mut KnownKernels) -> Vec<Node> {
        let count = nodes.len() as u32;
        let kernels = (0..count).map(|at| Kernel::of(&nodes, at, known)).collect();
        let (queued, taking, touched) = Default::default();
        let priorities = vec![None; nodes.len()];
        let mut queue = Self { nodes, known, kernels, queued, priorities, taking, touched };
        (0..count).for_each(|at| queue.compare_operands(at));
        (0..count).for_each(|at| queue.enqueue(at));
        while let Some((priority, at)) = queue.queued.pop() {
            let known = &mut queue.priorities[at as usize];
            if known.is_some_and(|known| known.cmp(&priority).is_eq()) {
                *known = None;
                queue.fuse(at);
            }
        }
        queue.finish()
    }
    /// The nodes, with the kernels that are left.
    fn finish(self) -> Vec<Node> {
        let Self { mut nodes, known, kernels, .. } = self;
        for (node, kernel) in nodes.iter_mut().zip(&kernels) {
            if kernel.kind == Kind::Fusible && !node.is_gone {
                known.put(kernel.id, &kernel.operands, node);
            }
        }
        nodes
    }
    /// Whether node `at` may be fused into `consumer`, one of its users.
    fn can_fuse(&mut self, at: u32, consumer: u32) -> bool {
        let user = &self.kernels[consumer as usize];
        if user.kind != Kind::Fusible || self.kernels[at as usize].kind == Kind::Bitcast {
            return user.kind == Kind::Fusible && self.outcome(at, consumer).can_fuse;
        }
        // Of others it is known, as they are in the queue.
        let place = user.operands.binary_search_by_key(&at, |it| it.node);
        place.is_ok_and(|place| user.operands[place].entered.can_fuse)
    }
    fn outcome(&mut self, at: u32, consumer: u32) -> Outcome {
        let fusing = fusing(&self.kernels, at, consumer);
        self.known.outcome(fusing)
    }
    /// Recomputes what `consumer` saves if each of its operands is fused into it.
    fn compare_operands(&mut self, consumer: u32) {
        for index in 0..self.kernels[consumer as usize].operands.len() {
            self.compare(consumer, index);
        }
    }
    /// Recomputes what `consumer` saves if its operand at `index` is fused into it.
    fn compare(&mut self, consumer: u32, index: usize) {
        let user = &self.kernels[consumer as usize];
        let at = user.operands[index].node;
        let producer = &self.kernels[at as usize];
        if producer.kind != Kind::Fusible || producer.is_kept || user.kind != Kind::Fusible {
            return;
        }
        let outcome = self.outcome(at, consumer);
        let known = &mut self.kernels[consumer as usize].operands[index];
        let before = std::mem::replace(&mut known.entered, outcome);
        let producer = &mut self.kernels[at as usize];
        producer.saved += outcome.saved - before.saved;
        match (before.can_fuse, outcome.can_fuse) {
            (false, true) => producer.num_taking += 1,
            (true, false) => producer.num_taking -= 1,
            _ => {}
        }
    }
    /// Subtracts what `consumer` would save with each of its operands, before these are removed.
    fn forget_operands(&mut self, consumer: u32) {
        for index in 0..self.kernels[consumer as usize].operands.len() {
            let operand = &mut self.kernels[consumer as usize].operands[index];
            let (at, before) = (operand.node, std::mem::take(&mut operand.entered));
            let producer = &mut self.kernels[at as usize];
            producer.saved -= before.saved;
            producer.num_taking -= u32::from(before.can_fuse);
        }
    }
    /// Puts `at` in the queue with its priority, or removes it.
    fn enqueue(&mut self, at: u32) {
        let priority = self.priority(at);
        let known = &mut self.priorities[at as usize];
        if *known == priority {
            return;
        }
        *known = priority;
        if let Some(priority) = priority {
            self.queued.push((priority, at));
        }
    }
    /// The seconds that fusing node `at` into its users saves; `None` if it cannot be fused.
    fn priority(&mut self, at: u32) -> Option<Seconds> {
        let kernel = &self.kernels[at as usize];
        let node = &self.nodes[at as usize];
        if kernel.is_kept || node.is_gone || node.users.is_empty() {
            return None;
        }
        if kernel.kind == Kind::Bitcast {
            let count = node.users.len();
            let takes = |index: usize| self.can_fuse(at, self.nodes[at as usize].users[index]);
            return (0..count).any(takes).then_some(Seconds(f64::INFINITY));
        }
        let takes_all = kernel.num_taking > 0
            && (kernel.num_taking + kernel.num_names) as usize == node.users.len();
        let priority = self.known.seconds(kernel.id) + LAUNCH + kernel.saved;
        (takes_all && priority >= 0.0).then_some(Seconds(priority))
    }
    /// Fuses node `at` into its users.
    fn fuse(&mut self, at: u32) {
        let mut taking = std::mem::take(&mut self.taking);
        let mut users = std::mem::take(&mut self.nodes[at as usize].users);
        users.retain(|&user| {
            let takes = self.can_fuse(at, user);
            if takes {
                taking.push(user);
            }
            !takes
        });
        self.nodes[at as usize].users = users;
        let is_name = self.kernels[at as usize].kind == Kind::Bitcast;
        for &user in &taking {
            self.forget_operands(user);
            self.fuse_into(at, user);
        }
        let node = &mut self.nodes[at as usize];
        node.is_fused |= !taking.is_empty();
        if node.users.is_empty() && !taking.is_empty() {
            node.is_gone = true;
            self.forget_operands(at);
            for index in 0..self.kernels[at as usize].operands.len() {
                let operand = self.kernels[at as usize].operands[index].node;
                if self.nodes[operand as usize].users.remove(at) {
                    self.kernels[operand as usize].num_names -= u32::from(is_name);
                }
                self.enqueue(operand);
            }
        }
        self.update(&taking);
        taking.clear();
        self.taking = taking;
    }
    /// Makes node `at` part of the kernel of `user`.
    fn fuse_into(&mut self, at: u32, user: u32) {
        let fusing = fusing(&self.kernels, at, user);
        let id = self.known.fused(fusing);
        let mut operands =
            Vec::with_capacity(fusing.consumer.1.len() + fusing.producer.1.len() - 1);
        fusing.each_operand(|node, is_new| {
            if is_new {
                self.nodes[node as usize].add_user(user);
            }
            operands.push(Operand::new(node));
        });
        let kernel = &mut self.kernels[user as usize];
        (kernel.id, kernel.operands) = (id, operands);
    }
    /// Updates the priorities around the nodes `changed`.
    fn update(&mut self, changed: &[u32]) {
        let mut touched = std::mem::take(&mut self.touched);
        for &user in changed {
            self.compare_operands(user);
            touched.extend(self.kernels[user as usize].operands.iter().map(|it| it.node));
            // Comparing does not change who the users are.
            let users = std::mem::take(&mut self.nodes[user as usize].users);
            for &outer in users.iter() {
                let operands = &self.kernels[outer as usize].operands;
                if let Ok(index) = operands.binary_search_by_key(&user, |it| it.node) {
                    self.compare(outer, index);
                }
            }
            self.nodes[user as usize].users = users;
            touched.push(user);
        }
        touched.sort_unstable();
        touched.dedup();
        for at in touched.drain(..) {
            self.enqueue(at);
        }
        self.touched = touched;
    }
}

/// Node `at`, and `consumer`, which reads it.
fn fusing(kernels: &[Kernel], at: u32, consumer: u32) -> Fusing<'_> {
    let (consumer, producer) = (&kernels[consumer as usize], &kernels[at as usize]);
    Fusing {
        consumer: (consumer.id, &consumer.operands),
        producer: (producer.id, &producer.operands),
        at,
    }
}

#[cfg(test)]
mod tests {
    use super::super::expression::Expression;
    use super::super::hero::{Hero, Reduction};
    use super::*;

    /// Random numbers.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % end
        }
        fn of<T: Copy>(&mut self, choices: &[T]) -> T {
            choices[self.below(choices.len())]
        }
        fn is(&mut self) -> bool {
            self.below(2) == 0
        }
        fn hero(&mut self) -> Hero {
            let minor = self.of(&[32, 64]);
            match self.below(12) {
                0 => Hero::Reduction(Reduction { is_row: self.is(), dims: [1, 64, minor] }),
                1 => Hero::Transpose(self.of(&[4224.0, 8448.0])),
                2 => Hero::Concatenation,
                3 => Hero::Scatter,
                4 => Hero::Tiled,
                _ => Hero::Loop,
            }
        }
        fn expression(&mut self, kind: Kind, at: u32, others: &mut Self) -> Expression {
            let mut made = Expression::new(self.of(&[0.0, 64.0, 1e6, 1e9]));
            if kind == Kind::Outside || at == 0 {
                return made;
            }
            let count = if self.below(20) == 0 { 40 } else { 1 + self.below(3) };
            let operands: Vec<u32> = (0..count).map(|_| others.below(at as usize) as u32).collect();
            for &operand in &operands {
                match self.below(3) {
                    0 => made.read(operand, self.of(&[0.25, 1.0, 3.0]), self.0 >> 40 & 1 == 0),
                    _ => made.read_in_place(operand),
                }
                if kind == Kind::Bitcast {
                    break;
                }
            }
            (made.is_tileable, made.is_fusion) = (self.is(), self.is());
            if self.below(3) == 0 {
                made.chain = operands[0];
            }
            if kind == Kind::Fusible {
                (made.hero, made.size) = (self.hero(), self.of(&[1.0, 3.0]));
                made.num_moving = self.below(2) as u32;
                made.has_transpose = self.below(4) == 0;
                made.is_transpose = made.has_transpose && self.is();
                made.has_reduction = self.below(4) == 0;
                if matches!(made.hero, Hero::Reduction(_)) {
                    made.num_reductions = 1 + self.below(2) as u32;
                    made.shared_bytes = self.of(&[0.0, 8192.0, 30_000.0]);
                }
                if made.hero == Hero::Scatter || self.below(8) == 0 {
                    made.updated = operands[0];
                }
            }
            made
        }
        fn nodes(&mut self) -> Vec<Node> {
            let mut nodes: Vec<Node> = Vec::new();
            for at in 0..10 + self.below(60) as u32 {
                // Few kinds of nodes, so that pairs of them come again; some are not quite the same.
                let mut own = Self((self.below(24) as u64) << 40);
                own.below(2);
                let kind = match own.below(12) {
                    0 | 1 => Kind::Outside,
                    2 => Kind::Apart,
                    3 => Kind::Bitcast,
                    _ => Kind::Fusible,
                };
                let mut node = Node::new(kind, None, own.expression(kind, at, self));
                let other = if self.below(4) == 0 { &mut *self } else { &mut own };
                node.element = other.of(&[2.0, 4.0]);
                node.launched = other.of(&[64.0, 4096.0, 1e6, 1e8]);
                node.looped = node.launched * other.of(&[1.0, 1.0, 64.0]);
                node.bytes = node.launched * node.element;
                node.written = node.bytes * other.of(&[1.0, 1.0, 0.25]);
                for used in &node.expression.uses {
                    nodes[used.node as usize].add_user(at);
                }
                nodes.push(node);
            }
            nodes
        }
    }

    #[test]
    fn what_is_known_changes_nothing() {
        let (mut chance, mut known) = (Chance(1), KnownKernels::bounded(usize::MAX));
        let (mut num_fused, mut num_kept) = (0, 0);
        for round in 0..600 {
            let nodes = chance.nodes();
            let alone = Queue::run(nodes.clone(), &mut KnownKernels::bounded(0));
            let again = Queue::run(nodes, &mut known);
            assert_eq!(format!("{alone:#?}"), format!("{again:#?}"), "round {round}");
            num_fused += alone.iter().filter(|node| node.is_gone).count();
            num_kept += alone.iter().filter(|node| !node.is_gone).count();
        }
        assert!(num_fused > 500 && num_kept > 500, "{num_fused} of {num_kept}");
    }
}
