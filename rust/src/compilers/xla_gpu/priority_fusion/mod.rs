//! Priority fusion: which producers XLA:GPU fuses into their consumers.
//!
//! A producer is fused into all of its users or into none: then each user recomputes it, and it is not written. The next producer
//! is always the one whose fusion saves most time by the performance model; then the priorities of its neighbours are updated.
//! Bitcasts are fused first, and are kept for users that do not fuse.
//!
//! Source: XLA's `PriorityFusion`.

mod can_fuse;
mod expression;
mod flops;
mod gemm_fusion;
pub(in crate::compilers) mod hero;
pub(crate) mod known_kernels;
mod multi_output_fusion;
mod node;
mod nodes;
mod op_expressions;
mod performance_model;
mod queue;
mod softmax_rewriter;
mod tile_order;
pub(in crate::compilers) mod topological_order;
mod users;

pub use self::gemm_fusion::TakenIn;
use self::hero::Hero;
use self::known_kernels::KnownKernels;
use self::multi_output_fusion::{joined, Joined};
use self::node::{Kind, Node};
use self::nodes::{Given, Nodes};
use self::queue::Queue;
use crate::compilers::xla_cpu::fusion::materialization::Storage;
use crate::compilers::xla_cpu::layout_assignment::operand_copies::Layouts;
use crate::compilers::xla_gpu::merged_dots::MergedDots;
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use rustc_hash::FxHashMap;

/// Seconds of a kernel that XLA does not estimate.
const UNKNOWN: f64 = 1e-8;

/// The fusion decisions for a program.
#[derive(Clone, Debug, Default)]
pub struct Fused {
    /// The values that are candidates for fusion.
    pub stored: Vec<Stored>,
    /// The values that a multi-output kernel writes, for each such kernel.
    pub joined: Vec<Vec<ValueId>>,
    /// The dots that are merged.
    pub merged: MergedDots,
    /// What products compute of their operands.
    pub taken_in: TakenIn,
    /// Seconds of the kernels that compute these values.
    pub seconds: FxHashMap<ValueId, f64>,
}

/// How a value that is a candidate for fusion is stored.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// The value.
    pub value: ValueId,
    /// Whether it is written to memory.
    pub is_written: bool,
    /// Whether some users recompute it.
    pub is_fused: bool,
}

/// The fusion decisions for `functions`, given by their ops.
pub fn fused(
    program: &Program,
    works: &mut Works<'_>,
    layouts: &mut Layouts,
    storage: &Storage,
    functions: &[OpId],
) -> Fused {
    let merged = layouts.merged.clone();
    let mut found = Fused { merged, ..Fused::default() };
    let mut known = KnownKernels::take();
    let of_value = vec![(BlockId::NONE, 0); program.num_value_ids()];
    let mut given = Given { program, works, layouts, storage, of_value };
    for &func in functions {
        for op in program.pre_order(func) {
            for region in program.op_regions(op) {
                let blocks: Vec<BlockId> = program.region_blocks(region).collect();
                for block in blocks.into_iter().filter(|&block| is_run(program, block)) {
                    let mut made = Nodes::of(&mut given, block);
                    found.taken_in.extend(made.fuse_into_products());
                    made.drop_unused_slices();
                    made.rewrite_normalizations(program.block_ops(block));
                    found.add(&Queue::run(made.nodes, &mut known));
                }
            }
        }
    }
    KnownKernels::leave(known);
    found
}

/// Whether `block` is executed, rather than the computation of a reduction or the like.
pub fn is_run(program: &Program, block: BlockId) -> bool {
    let owner = program.kind(program.block_parent_op(block));
    matches!(owner, OpKind::Func | OpKind::While | OpKind::Case | OpKind::If)
}

impl Fused {
    /// Adds the decisions for the nodes of a block.
    fn add(&mut self, nodes: &[Node]) {
        for node in nodes.iter().filter(|node| node.kind == Kind::Fusible) {
            let (is_written, is_fused) = (!node.is_gone, node.is_fused);
            let stored = node.value.map(|value| Stored { value, is_written, is_fused });
            self.stored.extend(stored);
            if let Some(value) = node.value.filter(|_| is_written) {
                // Of a reduction in two steps it is the first one that matters.
                let known = self.seconds.entry(value).or_default();
                let is_tiled = node.expression.hero == Hero::Tiled;
                *known = known.max(if is_tiled { UNKNOWN } else { node.seconds });
            }
        }
        for Joined { written, inner } in joined(nodes) {
            let value = |at: u32| nodes[at as usize].value;
            let inner = inner.into_iter().filter_map(value);
            self.stored.extend(inner.map(|value| Stored {
                value,
                is_written: false,
                is_fused: true,
            }));
            self.joined.push(written.into_iter().filter_map(value).collect());
        }
    }
}
