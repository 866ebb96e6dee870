//! Origins before propagation: the user's shardings.
//!
//! If several of them have an axis of a value, the first one counts, in this order: constraints,
//! manual computations, arguments and results of functions.

use super::origin::{NamedAxis, Origin, Origins, Settings};
use super::record::Recorder;
use crate::attribute::{last_step, parse_propagation_edges};
use crate::index::{FuncId, OpId, ShardingId, ValueId};
use crate::ir::{OpKind, Program};
use crate::shardy::Change;
use rustc_hash::FxHashMap;

/// The largest step in attributes of `program`, -1 if there is none.
fn last_recorded_step(program: &Program) -> i64 {
    const NAME: &str = "sdy.propagation_edges";
    if program.strings().find(NAME).is_none() {
        return -1;
    }
    let steps = program.pre_order(program.module_op()).filter_map(|op| {
        let steps = parse_propagation_edges(program.attr(op, NAME)?, 0)?;
        steps.ok().map(|steps| last_step(&steps))
    });
    steps.max().unwrap_or(-1)
}

/// The arguments of the body of `op`, a manual computation.
pub(super) fn body_args(program: &Program, op: OpId) -> Vec<ValueId> {
    let region = program.op_regions(op).next();
    let body = region.and_then(|region| program.region_entry(region).get());
    body.map_or_else(Vec::new, |body| program.block_args(body).collect())
}

impl Recorder {
    /// Starts a record of `program` in its present state; `None` if no record is asked for.
    pub fn start(program: &mut Program, settings: Settings) -> Option<Self> {
        if !settings.is_any() {
            return None;
        }
        let mut recorder = Self {
            settings,
            origins: Origins::default(),
            constraints: FxHashMap::default(),
            manual_computations: Vec::new(),
            step: last_recorded_step(program) + 1,
            only_known: program.shardy().has(Change::KnownOrigins),
        };
        if settings.sharding_origins {
            recorder.find_initial(program);
        }
        Some(recorder)
    }

    /// Finds the origins in the present state of `program`, and names the ops that are origins.
    fn find_initial(&mut self, program: &mut Program) {
        let ops: Vec<OpId> = program.post_order(program.module_op()).collect();
        for &op in &ops {
            if program.kind(op) == OpKind::ShardingConstraint {
                self.constraint(program, op);
            }
        }
        for &op in &ops {
            if program.kind(op) == OpKind::ManualComputation {
                self.manual_computation(program, op);
            }
        }
        for func in program.functions_in_order() {
            self.function(program, func);
        }
    }

    fn constraint(&mut self, program: &mut Program, op: OpId) {
        let id = self.constraints.len() as u32;
        let origin = Origin::Constraint(id);
        let (operand, result) = (program.operand(op, 0), program.result(op, 0));
        self.add_all(program, result, program.sharding(result), origin);
        let sharding = program.sharding_of(operand);
        self.add_all(program, operand, sharding, origin);
        program.set_attr(op, "sdy.sharding_origin_name", &format!("\"{origin}\""));
        self.constraints.insert(op, id);
    }

    fn manual_computation(&mut self, program: &mut Program, op: OpId) {
        let id = self.manual_computations.len() as u32;
        for (index, arg) in body_args(program, op).into_iter().enumerate() {
            let origin = Origin::ManualInput { id, index: index as u32 };
            self.add_all(program, arg, program.sharding(arg), origin);
            let source = program.operands(op).nth(index);
            if let Some(source) = source {
                let sharding = program.sharding_of(source);
                self.add_all(program, source, sharding, origin);
            }
        }
        for (index, result) in program.op_results(op).enumerate() {
            let origin = Origin::ManualOutput { id, index: index as u32 };
            self.add_all(program, result, program.sharding(result), origin);
        }
        program.set_attr(op, "sdy.sharding_origin_name", &format!("\"mc_{id}\""));
        self.manual_computations.push(op);
    }

    fn function(&mut self, program: &mut Program, func: FuncId) {
        let Some(body) = program.func_body(func).get() else { return };
        for (index, arg) in program.block_args(body).enumerate() {
            let sharding = program.sharding_of(arg);
            self.add_all(program, arg, sharding, Origin::Input(index as u32));
        }
        let Some(last) = program.last_op(body).get() else { return };
        let returned = program.operands(last);
        let shardings = program.func_results(func).iter().map(|result| result.sharding);
        let pairs: Vec<(ValueId, ShardingId)> = returned.zip(shardings).collect();
        for (index, (value, sharding)) in pairs.into_iter().enumerate() {
            self.add_all(program, value, sharding, Origin::Output(index as u32));
        }
    }

    /// Sets the origin of each axis of `sharding` that has no origin for `value` yet.
    fn add_all(
        &mut self,
        program: &mut Program,
        value: ValueId,
        sharding: ShardingId,
        origin: Origin,
    ) {
        let Some(value) = program.shardable_value(value) else { return };
        let Some(sharding) = program.shardings().get(sharding) else { return };
        let mesh = program.meshes()[sharding.mesh].mesh.clone();
        let axes: Vec<_> = sharding.dims.iter().flat_map(|dim| &dim.axes).copied().collect();
        for axis in axes {
            let name = program.intern(mesh.axis_name(axis.axis));
            self.add_origin(value, NamedAxis { name, sub: axis.sub }, origin);
        }
    }
}
