//! Collectives that XLA combines into one.
//!
//! XLA combines the collectives of a block that have the same element type, reduction and replica groups, on GPUs also all-gathers
//! with the same replica groups, up to a byte threshold. The first one in post-order that is left begins a set, to which the others
//! of its kind are added until one depends on the set. The next set is found in the post-order of the combined graph. On TPUs the
//! last one begins a set, and all before it are added that the set does not depend on.
//!
//! Source: XLA's `AllReduceCombiner`, `AllGatherCombiner` and `ReduceScatterCombiner`; a set has at most 256 members, on CPUs of
//! any size.

use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::breadth_first_scheduler::breadth_first;
use crate::compilers::xla_cpu::fusion::op_facts::{Fact, Facts};
use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::compilers::xla_cpu::passes::combined_sets::{Candidates, Sets, Visits};
use crate::index::{OpId, StrId};
use crate::ir::Program;
use crate::work::cached::Works;
use rustc_hash::FxHashMap;

/// What has to be equal: op, element type, reduction, replica groups.
type Key<'a> = (StrId, &'a str, StrId, &'a str);

/// Facts on ops, the compiler, and the byte threshold of a set, if there is one.
type Chosen<'a> = (&'a Facts, Compiler, Option<u128>);

/// The set that each collective among the ops of a block is in, by what is chosen. Those that run alone are in sets of one.
pub fn combined(
    program: &Program,
    works: &mut Works<'_>,
    of: Chosen<'_>,
    ops: &[OpId],
) -> FxHashMap<OpId, u32> {
    let Some(found) = Candidates::of(program, works, of, ops) else {
        return FxHashMap::default();
    };
    let sets = Sets::new(program, of.0, ops, &found);
    found.combined(sets)
}

/// As [`combined`], for the kernel `graph` of the block, in which no collectives are combined yet: its dependences include fusion.
pub fn combined_kernels(
    program: &Program,
    works: &mut Works<'_>,
    of: Chosen<'_>,
    graph: &Graph,
) -> FxHashMap<OpId, u32> {
    let order = breadth_first(graph);
    let ops: Vec<OpId> = order.iter().map(|&at| graph.kernels[at as usize].op).collect();
    let is_own = |&&at: &&u32| graph.kernels[at as usize].is_op;
    let own: Vec<OpId> =
        order.iter().filter(is_own).map(|&at| graph.kernels[at as usize].op).collect();
    let Some(found) = Candidates::of(program, works, of, &own) else {
        return FxHashMap::default();
    };
    let mut visits = Visits::new(graph.kernels.len(), &found);
    for (&at, &op) in order.iter().zip(&ops) {
        let kernel = graph.kernels[at as usize];
        let mut needs = Vec::new();
        graph.for_each_need(at, |by| needs.push(by as usize));
        let op = if kernel.is_op { op } else { OpId::NONE };
        visits.visit(op, needs.into_iter(), std::iter::once(at as usize));
    }
    // What the block returns comes last, in its order.
    let returned = graph.returned.iter().filter(|&&item| item != NONE);
    let makers = returned.map(|&item| graph.items[graph.stored_as(item) as usize].made_by);
    let makers = makers.filter(|&by| by != NONE).map(|by| by as usize);
    visits.visit(OpId::NONE, makers, std::iter::empty());
    let sets = visits.sets;
    found.combined(sets)
}

impl Candidates {
    /// The candidates among `ops`; `None` if there are none.
    fn of(
        program: &Program,
        works: &mut Works<'_>,
        (facts, compiler, limit): Chosen<'_>,
        ops: &[OpId],
    ) -> Option<Self> {
        let mut kinds: FxHashMap<Key<'_>, u32> = FxHashMap::default();
        let is_sum = |op: &OpId| {
            facts.has(*op, Fact::REDUCES)
                || compiler.combines_all_collectives()
                    && facts.has(*op, Fact::OPAQUE)
                    && program.op_name(*op) == GATHER
        };
        // What comes before all of them needs none.
        let first = ops.iter().position(is_sum)?;
        let (counts, bytes) = (Vec::new(), Vec::new());
        let all = limit.unwrap_or(u128::MAX);
        let from_last = compiler.combines_from_last();
        let mut found = Self { ops: Vec::new(), bytes, counts, limit: all, from_last, first };
        for &op in ops[first..].iter().filter(|op| is_sum(op)) {
            let bytes = limit.map_or(0, |_| {
                program.op_results(op).next().map_or(0, |value| works.tensors.bytes(value))
            });
            if bytes > all {
                continue;
            }
            if let Some(key) = key(program, op, compiler) {
                let next = kinds.len() as u32;
                let kind = *kinds.entry(key).or_insert(next);
                found.counts.resize(kinds.len(), 0);
                found.counts[kind as usize] += 1;
                found.ops.push((op, kind));
                found.bytes.push(bytes);
            }
        }
        (!kinds.is_empty()).then_some(found)
    }
    /// The first member of each collective's set; `sets` is the dependence graph.
    fn combined(self, mut sets: Sets) -> FxHashMap<OpId, u32> {
        if self.from_last {
            sets.combine_from_last(self.counts, self.limit);
        } else {
            sets.combine(self.counts, self.limit);
        }
        sets.by_op()
    }
}

/// The name of all-reduces.
const SUM: &str = "stablehlo.all_reduce";

/// The name of all-gathers.
const GATHER: &str = "stablehlo.all_gather";

/// The name of reduce-scatters.
const SCATTER: &str = "stablehlo.reduce_scatter";

/// Whether `op` is a reduce-scatter that partitioning created, which `compiler` leaves as an all-reduce and a slice.
pub fn is_expanded_scatter(program: &Program, compiler: Compiler, op: OpId) -> bool {
    !compiler.creates_reduce_scatters()
        && program.op_name(op) == SCATTER
        && program.cause(op).is_some()
}

/// What has to be equal for `op`, if it is a collective with one operand that `compiler` combines. CPUs reduce `bf16` as `f32`.
fn key(program: &Program, op: OpId, compiler: Compiler) -> Option<Key<'_>> {
    let has_all = compiler.combines_all_collectives();
    let name = program.op_name(op);
    let is_scatter = has_all && name == SCATTER || is_expanded_scatter(program, compiler, op);
    let groups = program.attr(op, "replica_groups").unwrap_or_default();
    if has_all && name == GATHER && program.num_operands(op) == 1 {
        return Some((program.op_name_id(op), "", StrId::NONE, groups));
    }
    if !(name == SUM || is_scatter) || program.num_operands(op) != 1 {
        return None;
    }
    // What is expanded is an all-reduce like others.
    let kind = if has_all { program.op_name_id(op) } else { StrId::NONE };
    let region = program.op_regions(op).next()?;
    let inner = program.block_ops(program.region_entry(region).get()?).next()?;
    let text = program.value_type_text(program.result(op, 0));
    let element = text.rsplit(['x', '<']).next().unwrap_or_default();
    let element = element.strip_suffix('>').unwrap_or(element);
    let element = if compiler.is_for_hosts() && element == "bf16" { "f32" } else { element };
    Some((kind, element, program.op_name_id(inner), groups))
}
