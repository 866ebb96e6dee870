//! The number of runs of each block, from calls, trip counts of loops, and branches.
//!
//! A function runs once for each run of its calls. Of the branches of a `case` or `if` the one with the most work counts. A loop
//! with an unknown trip count counts as one trip.

use crate::error::Span;
use crate::index::{BlockId, FuncId, Id, OpId, RegionId};
use crate::inlining::call_graph::Calls;
use crate::ir::{OpKind, Program};
use crate::stablehlo::trips::trip_count;
use crate::work::cached::{Outcome, Works};
use crate::work::ops::Work;
use rustc_hash::FxHashMap;

/// A loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The `stablehlo.while`.
    pub op: OpId,
    /// Its location, as that of an [`crate::cost::OpRow`].
    pub loc: Span,
    /// The trip count; `None` where it is not known.
    pub trips: Option<u64>,
    /// Number of runs of the loop op itself.
    pub entered: u128,
}

/// The number of runs of each block of a program.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    times: Vec<u128>,
    /// The number of runs of each block if each loop runs its body once.
    once: Vec<u128>,
    /// Functions that run, callees before their callers.
    pub functions: Vec<FuncId>,
    /// Loops that run, in program order of each function.
    pub loops: Vec<Loop>,
    calls: Calls,
}

impl Execution {
    /// The number of runs of the blocks of `program` when its entry function is called once.
    pub fn new(program: &Program, works: &mut Works<'_>) -> Self {
        let calls = Calls::new(program);
        let times = vec![0; program.num_block_ids()];
        let once = times.clone();
        let mut this = Self { times, once, functions: Vec::new(), loops: Vec::new(), calls };
        let Some(entry) = program.entry_function() else { return this };
        this.functions = this.calls.callees_first(program, entry);
        let weights = Weights::new(program, &this, works);
        if let Some(body) = program.func_body(entry).get() {
            this.times[body.index()] = 1;
            this.once[body.index()] = 1;
        }
        for func in this.functions.clone().into_iter().rev() {
            let func = program.func_op(func);
            // Without calls no other op enters blocks.
            let has_calls = this.calls.has_calls;
            let ops = if has_calls { works.ops_inside(func) } else { works.with_regions(func) };
            this.run(program, &ops, &weights);
        }
        this
    }
    /// The number of runs of `block`.
    pub fn times(&self, block: BlockId) -> u128 {
        self.times[block.index()]
    }
    /// The number of runs of `block` if each loop ran its body once.
    pub fn times_once(&self, block: BlockId) -> u128 {
        self.once[block.index()]
    }
    /// Whether the program has calls.
    pub const fn has_calls(&self) -> bool {
        self.calls.has_calls
    }
    /// The callee of `op`, if it is a call of a function with a body.
    pub fn callee(&self, program: &Program, op: OpId) -> Option<FuncId> {
        self.calls.callee(program, op)
    }
    /// Propagates the number of runs of a function's body to the blocks in it and to its callees; `ops` are its ops with regions,
    /// and all calls.
    fn run(&mut self, program: &Program, ops: &[OpId], weights: &Weights) {
        for &op in ops {
            let at = program.parent_block(op).index();
            let (times, once) = (self.times[at], self.once[at]);
            if once == 0 {
                continue;
            }
            match program.kind(op) {
                OpKind::While => {
                    let trips = trip_count(program, op);
                    self.loops.push(Loop { op, loc: program.loc(op), trips, entered: times });
                    let trips = u128::from(trips.unwrap_or(1));
                    let mut regions = program.op_regions(op);
                    let condition = times.saturating_mul(trips.saturating_add(1));
                    self.enter(program, regions.next(), (condition, once));
                    self.enter(program, regions.next(), (times.saturating_mul(trips), once));
                }
                OpKind::Case | OpKind::If => {
                    let regions: Vec<RegionId> = program.op_regions(op).collect();
                    let heaviest = weights.heaviest(&regions);
                    self.enter(program, heaviest, (times, once));
                }
                _ => {
                    let is_inside = weights.walks_into(program, op);
                    for region in program.op_regions(op).filter(|_| is_inside) {
                        self.enter(program, Some(region), (times, once));
                    }
                    if let Some(callee) = self.callee(program, op) {
                        let body = program.func_body(callee);
                        for (list, more) in [(&mut self.times, times), (&mut self.once, once)] {
                            list[body.index()] = list[body.index()].saturating_add(more);
                        }
                    }
                }
            }
        }
    }
    fn enter(&mut self, program: &Program, region: Option<RegionId>, (times, once): (u128, u128)) {
        let Some(region) = region else { return };
        for block in program.region_blocks(region) {
            self.times[block.index()] = times;
            self.once[block.index()] = once;
        }
    }
}

/// The work of regions, to choose the branch with the most work.
struct Weights {
    regions: FxHashMap<RegionId, Work>,
    has_own_measure: Vec<bool>,
}

impl Weights {
    fn new(program: &Program, execution: &Execution, works: &mut Works<'_>) -> Self {
        let mut this = Self { regions: FxHashMap::default(), has_own_measure: Vec::new() };
        this.has_own_measure = vec![false; program.num_op_ids()];
        for &func in &execution.functions {
            for &op in works.with_regions(program.func_op(func)).iter() {
                this.has_own_measure[op.index()] = works.is_measured(op);
            }
        }
        if !program.has_any(&[OpKind::Case, OpKind::If]) {
            return this;
        }
        let mut functions: FxHashMap<FuncId, Work> = FxHashMap::default();
        for &func in &execution.functions {
            // An op's regions come before the op itself, and callees before callers.
            for op in program.post_order(program.func_op(func)) {
                for region in program.op_regions(op) {
                    let mut total = Work::default();
                    for inner in
                        program.region_blocks(region).flat_map(|block| program.block_ops(block))
                    {
                        total =
                            total.plus(this.of_op(program, inner, execution, works, &functions));
                    }
                    this.regions.insert(region, total);
                }
            }
            let region = program.op_regions(program.func_op(func)).next();
            let total = region.and_then(|region| this.regions.get(&region)).copied();
            functions.insert(func, total.unwrap_or_default());
        }
        this
    }
    fn of_op(
        &self,
        program: &Program,
        op: OpId,
        execution: &Execution,
        works: &mut Works<'_>,
        functions: &FxHashMap<FuncId, Work>,
    ) -> Work {
        let own = match works.of(op) {
            Outcome::Counted(work) => return work,
            Outcome::Collective(work) => work,
            Outcome::Inside | Outcome::Unknown(_) => Work::default(),
        };
        if let Some(callee) = execution.callee(program, op) {
            return own.plus(functions.get(&callee).copied().unwrap_or_default());
        }
        let regions: Vec<RegionId> = program.op_regions(op).collect();
        let of = |region: &RegionId| self.regions.get(region).copied().unwrap_or_default();
        match program.kind(op) {
            OpKind::While => {
                let trips = u128::from(trip_count(program, op).unwrap_or(1));
                regions.iter().map(of).fold(own, |sum, work| sum.plus(work.times(trips)))
            }
            OpKind::Case | OpKind::If => {
                own.plus(self.heaviest(&regions).as_ref().map(of).unwrap_or_default())
            }
            _ if self.has_own_measure[op.index()] => own,
            _ => regions.iter().map(of).fold(own, Work::plus),
        }
    }
    /// Whether the regions of `op` are control flow, not computations that it applies to elements.
    fn walks_into(&self, program: &Program, op: OpId) -> bool {
        program.num_regions(op) > 0 && !self.has_own_measure[op.index()]
    }
    /// The first of `regions` with the most work.
    fn heaviest(&self, regions: &[RegionId]) -> Option<RegionId> {
        let weight = |region: &RegionId| {
            let work = self.regions.get(region).copied().unwrap_or_default();
            work.flops.saturating_add(work.transcendentals)
        };
        regions.iter().copied().rev().max_by_key(weight)
    }
}
