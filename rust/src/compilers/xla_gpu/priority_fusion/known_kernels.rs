//! Kernels by their content: what it saves to fuse one into another, and the kernel that this makes, is found out once for all
//! that are alike.
//!
//! A kernel reads operands, which are numbered by their places in it, and of which it knows the sizes. So the same op is the same
//! kernel in each layer and in each program; of a producer and its consumer only the operands that both read are told apart.

use super::can_fuse::can_fuse;
use super::expression::{Expression, Root, Use, NONE};
use super::hero::{Hero, Reduction};
use super::node::{Kind, Node, Size};
use super::performance_model::{fused_seconds, measure};
use super::users::Users;
use crate::memoization::{CacheSlot, Memo, Taken};
use std::cmp::Ordering;

/// The most kernels, and the most pairs of them, that are kept between programs: a run that has as many leaves none.
pub const MAX_KERNELS: usize = 1 << 14;
const MAX_PAIRS: usize = 1 << 17;

static KEPT: CacheSlot<KnownKernels> = CacheSlot::new();

/// The number of kernels that are kept.
pub fn len() -> usize {
    KEPT.size(KnownKernels::len)
}

/// Drops what is kept.
pub fn clear() {
    KEPT.clear();
}

/// Kernels, and what is known of fusing them.
pub struct KnownKernels {
    /// The kernels of single ops by what they compute and read.
    by_content: Memo<u32>,
    kernels: Vec<Kernel>,
    /// The outcomes of fusing, and the kernels that were made, by [`Fusing::key`].
    outcomes: Memo<Outcome>,
    fused: Memo<u32>,
}

/// A kernel, by itself.
struct Kernel {
    /// The node that computes it; its operands are numbered by their places.
    node: Node,
    sizes: Vec<Size>,
}

/// Whether a producer can be fused into a consumer, and the seconds that the consumer saves then.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    pub can_fuse: bool,
    pub saved: f64,
}

/// An operand of the kernel of a node.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// The node that defines it.
    pub node: u32,
    /// The outcome of fusing it into this kernel, as last entered in the queue.
    pub entered: Outcome,
}

impl Operand {
    /// The result of `node`.
    pub fn new(node: u32) -> Self {
        Self { node, entered: Outcome::default() }
    }
}

/// The consumer and the producer of a pair, with their operands, and the node of the producer.
#[derive(Clone, Copy)]
pub struct Fusing<'o> {
    pub consumer: (u32, &'o [Operand]),
    pub producer: (u32, &'o [Operand]),
    pub at: u32,
}

/// Which kernel of a pair reads an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// The consumer: it is the result of the producer.
    OfProducer,
    Consumer,
    Producer,
    Both,
}

impl Fusing<'_> {
    /// Calls `visit` with the operands of both kernels in order.
    #[inline]
    fn each(&self, mut visit: impl FnMut(u32, Reader)) {
        let (mut left, mut right) = (self.consumer.1, self.producer.1);
        loop {
            let (one, other) = match (left.first(), right.first()) {
                (Some(one), Some(other)) => (one.node, other.node),
                (Some(one), None) => (one.node, NONE),
                (None, Some(other)) => (NONE, other.node),
                (None, None) => return,
            };
            if one <= other {
                left = &left[1..];
            }
            if other <= one {
                right = &right[1..];
            }
            let reader = match one.cmp(&other) {
                Ordering::Less if one == self.at => Reader::OfProducer,
                Ordering::Less => Reader::Consumer,
                Ordering::Equal => Reader::Both,
                Ordering::Greater => Reader::Producer,
            };
            visit(one.min(other), reader);
        }
    }
    /// Writes all that the outcome depends on into `key`: both kernels, the place of the producer's result among the operands of
    /// the consumer, and the places of the producer's operands there.
    #[inline]
    fn write(&self, key: &mut Vec<u32>) {
        let (consumer, producer) = (self.consumer.1, self.producer.1);
        let place = consumer.partition_point(|it| it.node < self.at);
        key.extend_from_slice(&[self.consumer.0, self.producer.0, place as u32]);
        let mut place = 0;
        for operand in producer {
            // Both are in order.
            while consumer.get(place).is_some_and(|it| it.node < operand.node) {
                place += 1;
            }
            let is_both = consumer.get(place).is_some_and(|it| it.node == operand.node);
            key.push((place as u32) << 1 | u32::from(is_both));
        }
    }
    /// Calls `visit` with the operands of the kernel of both, in order, and whether only the producer read them before.
    pub fn each_operand(&self, mut visit: impl FnMut(u32, bool)) {
        self.each(|node, reader| {
            if reader != Reader::OfProducer {
                visit(node, reader == Reader::Producer);
            }
        });
    }
}

impl KnownKernels {
    /// None; at most `most` pairs will be known.
    pub(super) fn bounded(most: usize) -> Self {
        let (outcomes, fused) = (Memo::bounded(most), Memo::bounded(most));
        Self { by_content: Memo::bounded(most), kernels: Vec::new(), outcomes, fused }
    }
    /// Takes those that earlier runs left.
    pub fn take() -> Taken<Self> {
        KEPT.take(|| Self::bounded(MAX_PAIRS))
    }
    /// Leaves `known` to later runs, unless it is full.
    pub fn leave(known: Taken<Self>) {
        if known.len() <= MAX_KERNELS && known.outcomes.len() < MAX_PAIRS {
            KEPT.leave(known, Self::len);
        }
    }
    fn len(&self) -> usize {
        self.kernels.len()
    }
    /// The kernel of node `at`.
    pub fn kernel(&mut self, nodes: &[Node], at: u32) -> u32 {
        let node = &nodes[at as usize];
        let mut key = self.by_content.key();
        write(node, nodes, &mut key);
        self.by_content.find(key).unwrap_or_else(|key| {
            let known = self.add(|node| nodes[node as usize].size(), node.clone());
            self.by_content.add(key, known)
        })
    }
    /// The seconds of a kernel.
    pub fn seconds(&self, kernel: u32) -> f64 {
        self.kernels[kernel as usize].node.seconds
    }
    /// The outcome of fusing a producer into its consumer.
    pub fn outcome(&mut self, fusing: Fusing<'_>) -> Outcome {
        let mut key = self.outcomes.key();
        fusing.write(&mut key);
        self.outcomes.find(key).unwrap_or_else(|key| {
            let outcome = self.find_out(fusing);
            self.outcomes.add(key, outcome)
        })
    }
    /// The kernel of a consumer with a producer fused into it.
    pub fn fused(&mut self, fusing: Fusing<'_>) -> u32 {
        let mut key = self.fused.key();
        fusing.write(&mut key);
        self.fused.find(key).unwrap_or_else(|key| {
            let fused = self.fuse(fusing);
            self.fused.add(key, fused)
        })
    }
    /// Makes `node` that of `kernel`, with these operands.
    pub fn put(&self, kernel: u32, operands: &[Operand], node: &mut Node) {
        let known = &self.kernels[kernel as usize].node;
        node.expression = known.expression.clone();
        renumber(&mut node.expression, |place| operands[place as usize].node);
        (node.launch, node.seconds) = (known.launch, known.seconds);
    }
    /// The sizes of the operands of a pair in order, the consumer and the producer with the numbers of these, and which of them is
    /// the producer's result.
    fn apart(&self, fusing: Fusing<'_>) -> (Vec<Size>, [Node; 2], u32) {
        let [consumer, producer] =
            [fusing.consumer.0, fusing.producer.0].map(|kernel| &self.kernels[kernel as usize]);
        let (mut of_consumer, mut of_producer) = (Vec::new(), Vec::new());
        let (mut sizes, mut at) = (Vec::new(), NONE);
        fusing.each(|_, reader| {
            let number = sizes.len() as u32;
            sizes.push(match reader {
                Reader::Producer => producer.sizes[of_producer.len()],
                _ => consumer.sizes[of_consumer.len()],
            });
            if reader == Reader::OfProducer {
                at = number;
            }
            if reader != Reader::Producer {
                of_consumer.push(number);
            }
            if matches!(reader, Reader::Producer | Reader::Both) {
                of_producer.push(number);
            }
        });
        let nodes = [(consumer, of_consumer), (producer, of_producer)].map(|(kernel, numbers)| {
            let mut node = kernel.node.clone();
            renumber(&mut node.expression, |place| numbers[place as usize]);
            node
        });
        (sizes, nodes, at)
    }
    fn find_out(&self, fusing: Fusing<'_>) -> Outcome {
        let (sizes, [consumer, producer], at) = self.apart(fusing);
        let can_fuse = can_fuse(at, &producer, &consumer);
        if !can_fuse || producer.kind != Kind::Fusible {
            return Outcome { can_fuse, saved: 0.0 };
        }
        let fused = fused_seconds(|node| sizes[node as usize], (at, &producer), &consumer);
        Outcome { can_fuse, saved: consumer.seconds - fused }
    }
    fn fuse(&mut self, fusing: Fusing<'_>) -> u32 {
        let (sizes, [mut consumer, producer], at) = self.apart(fusing);
        let before = &consumer.expression;
        let mut fused = before.with(at, &producer.expression);
        let named = producer.expression.uses.first();
        if let (Kind::Bitcast, true, Some(named)) = (producer.kind, before.updated == at, named) {
            // What is updated in place is updated under its other name.
            fused.updated = named.node;
        }
        consumer.expression = fused;
        self.add(|node| sizes[node as usize], consumer)
    }
    /// Adds the kernel of `node`, whose operands have these sizes.
    fn add(&mut self, size: impl Fn(u32) -> Size, mut node: Node) -> u32 {
        if node.kind == Kind::Fusible {
            measure(&size, &mut node);
        }
        let nodes: Vec<u32> = node.expression.uses.iter().map(|used| used.node).collect();
        let sizes = nodes.iter().map(|&node| size(node)).collect();
        renumber(&mut node.expression, |node| {
            nodes.binary_search(&node).map_or(NONE, |place| place as u32)
        });
        (node.value, node.users) = (None, Users::default());
        self.kernels.push(Kernel { node, sizes });
        self.kernels.len() as u32 - 1
    }
}

/// Gives the operands of `expression` other numbers.
fn renumber(expression: &mut Expression, number: impl Fn(u32) -> u32) {
    for used in &mut expression.uses {
        used.node = number(used.node);
    }
    for node in [&mut expression.chain, &mut expression.updated] {
        if *node != NONE {
            *node = number(*node);
        }
    }
}

/// Writes all that a kernel depends on into `key`.
fn write(node: &Node, nodes: &[Node], key: &mut Vec<u32>) {
    let Expression {
        uses,
        roots,
        flops,
        size,
        hero,
        chain,
        has_reduction,
        is_tileable,
        is_fusion,
        has_transpose,
        is_transpose,
        num_reductions,
        shared_bytes,
        num_moving,
        updated,
    } = &node.expression;
    let flags = [has_reduction, is_tileable, is_fusion, has_transpose, is_transpose];
    let flags = flags.iter().fold(0, |flags, &&flag| flags << 1 | u32::from(flag));
    let place = |wanted: u32| {
        let place = uses.iter().position(|used| used.node == wanted);
        place.map_or(NONE, |place| place as u32)
    };
    let (hero, [major, middle, minor]) = match *hero {
        Hero::Loop => (0, [0; 3]),
        Hero::Concatenation => (1, [0; 3]),
        Hero::Scatter => (2, [0; 3]),
        Hero::Tiled => (3, [0; 3]),
        Hero::Transpose(bytes) => (4, [bytes.to_bits(), 0, 0]),
        Hero::Reduction(Reduction { is_row, dims }) => {
            (5 + u32::from(is_row), dims.map(|dim| dim as u64))
        }
    };
    let (of_roots, of_uses) = (roots.len() as u32, uses.len() as u32);
    key.extend_from_slice(&[node.kind as u32, flags, *num_reductions, *num_moving]);
    key.extend_from_slice(&[place(*chain), place(*updated), of_roots, of_uses, hero]);
    let numbers = [node.written, node.launched, node.looped, *flops, *size, *shared_bytes];
    let numbers = numbers.iter().map(|number| number.to_bits()).chain([major, middle, minor]);
    for number in numbers {
        key.push(number as u32);
        key.push((number >> 32) as u32);
    }
    for Root { utilization, emitted } in roots {
        key.extend_from_slice(&words([utilization.to_bits(), emitted.to_bits()]));
    }
    for Use { node: used, roots, is_strided, utilization: _, seconds: _ } in uses {
        let Size { bytes, element } = nodes[*used as usize].size();
        key.extend_from_slice(&words([bytes.to_bits(), element.to_bits()]));
        key.push(u32::from(*is_strided));
        key.push(roots.len() as u32);
        for &root in roots {
            key.push(root);
        }
    }
}

const fn words([one, other]: [u64; 2]) -> [u32; 4] {
    [one as u32, (one >> 32) as u32, other as u32, (other >> 32) as u32]
}
