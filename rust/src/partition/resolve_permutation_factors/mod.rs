//! `sdy-resolve-permutation-factors`: makes the communication along permutation factors explicit.
//!
//! | op | rewrite, if halo exchange is enabled |
//! | --- | --- |
//! | `stablehlo.reverse` | computed on a mesh with reversed device order, see [`reverse`] |
//! | `stablehlo.pad`, `stablehlo.slice` | devices exchange elements with devices nearby, see [`manual`] |
//! | `stablehlo.reshape` | the same, if it splits a dim that does not divide evenly |
//! | any other op | reshards around it replicate these dims |
//!
//! Pads, slices and reshapes are rewritten since [`Change::HaloExchanges`].
//!
//! Source: Shardy's `resolve_permutation_factors`.

mod devices;
mod exchange;
mod groups;
mod halo;
mod local_exchange;
mod manual;
mod pad;
mod reshape;
mod reverse;
mod slice;

use super::channels::{last_channel, CHANNEL};
use super::device_id::DeviceCounts;
use super::insert_explicit_reshards::tensors::common_mesh;
use super::insert_explicit_reshards::{apply, Plan};
use crate::context::{Context, RuleSource};
use crate::error::{Code, Diagnostic, Result};
use crate::index::{FactorId, Id, MeshId, OpId, RuleId, ShardingId, ValueId};
use crate::ir::{InsertPoint, NewOp, OpKind, OpTraits, Payload, Program, SymbolTable};
use crate::mesh::Mesh;
use crate::op_sharding_rule::OpShardingRule;
use crate::projection::Projection;
use crate::shardy::Change;
use rustc_hash::FxHashMap;

/// Options of the pass.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether devices exchange halos, instead of gathering whole dims.
    pub enable_halo_exchange: bool,
    /// Whether `stablehlo.rng_bit_generator` may be sharded, although all devices then get the same
    /// numbers.
    pub shards_random_bits: bool,
    /// The numbers of replicas and of partitions.
    pub device_counts: DeviceCounts,
}

/// The named mesh for each mesh that was seen.
type NamedMeshes = FxHashMap<Mesh, MeshId>;

/// The state for making new ops.
pub struct Resolution {
    symbols: SymbolTable,
    meshes: NamedMeshes,
    /// The largest channel id in use.
    channel: i64,
    /// The op that returns the device id.
    id_op: &'static str,
    /// Whether permutes have channels; permutes between replicas have none.
    has_channels: bool,
}

impl Resolution {
    fn new(program: &mut Program, options: Options) -> Result<Self> {
        let mut meshes = NamedMeshes::default();
        for op in program.block_ops(program.module_block()) {
            if let Some(&Payload::Mesh(mesh)) = program.payload(op) {
                meshes.insert(program.mesh(mesh).clone(), mesh);
            }
        }
        Ok(Self {
            symbols: SymbolTable::new(program),
            meshes,
            channel: last_channel(program, program.pre_order(program.module_op())),
            id_op: options.device_counts.id_op()?,
            has_channels: options.device_counts.replica_count <= 1
                && program.shardy().has(Change::HaloExchanges),
        })
    }
    /// A permute of `input` with these source-target pairs.
    fn permute(
        &mut self,
        program: &mut Program,
        input: ValueId,
        pairs: &[[i64; 2]],
        sharding: ShardingId,
        at: InsertPoint,
    ) -> ValueId {
        let list: Vec<String> = pairs.iter().map(|[from, to]| format!("[{from}, {to}]")).collect();
        let elements =
            if list.is_empty() { String::new() } else { format!("[{}]", list.join(", ")) };
        let pairs = format!("dense<{elements}> : tensor<{}x2xi64>", pairs.len());
        let ty = program.type_of(input);
        let mut permute =
            NewOp::new("stablehlo.collective_permute", &[input], &[ty]).sharding(sharding);
        if self.has_channels {
            self.channel += 1;
            let channel = self.channel;
            let handle = format!("#stablehlo.channel_handle<handle = {channel}, type = 1>");
            permute = permute.attr(CHANNEL, handle);
        }
        program.build_value(permute.attr("source_target_pairs", pairs), at)
    }
}

/// Runs the pass on the module.
pub fn run(program: &mut Program, context: &mut Context, options: Options) -> Result<()> {
    context.rules.prepare(program, false)?;
    let mut resolution = Resolution::new(program, options)?;
    let ops: Vec<OpId> = program.post_order(program.module_op()).collect();
    let enables_halo = options.enable_halo_exchange;
    let exchanges = program.shardy().has(Change::HaloExchanges);
    for op in ops {
        if exchanges && program.kind(op) == OpKind::Reshape {
            reshape::resolve(program, op, enables_halo, &mut resolution);
            continue;
        }
        let Some(rule) = permuting_rule(program, &*context.rules, op, options) else { continue };
        let is_resolved = enables_halo
            && match program.kind(op) {
                OpKind::Pad => exchanges && pad::resolve(program, op, &mut resolution),
                OpKind::Slice => exchanges && slice::resolve(program, op, &mut resolution),
                _ => {
                    program.op_name(op) == "stablehlo.reverse"
                        && reverse::resolve(program, op, &mut resolution)
                }
            };
        if !is_resolved {
            let rule = program.rules()[rule].clone();
            replicate(program, op, &rule, is_random(program, op, options))?;
        }
    }
    Ok(())
}

/// A sharded operand of an op.
#[derive(Clone, Debug)]
struct Operand {
    value: ValueId,
    sharding: ShardingId,
    mesh: MeshId,
    shape: Vec<i64>,
}

impl Operand {
    /// The first operand of `op`; `None` if it is not sharded.
    fn of(program: &mut Program, op: OpId) -> Option<Self> {
        let value = program.operand(op, 0);
        let sharding = program.sharding_of(value);
        let mesh = program.mesh_of(sharding).get()?;
        if program.is_fully_replicated(sharding) || program.mesh(mesh).is_maximal() {
            return None;
        }
        let shape = program.value_type(value).static_shape()?;
        Some(Self { value, sharding, mesh, shape })
    }
    /// The value, padded at the high ends with `fill` or zeros; new ops are inserted before `op`.
    fn padded(
        &self,
        program: &mut Program,
        op: OpId,
        shape: &[i64],
        fill: Option<ValueId>,
    ) -> ValueId {
        if shape == self.shape {
            return self.value;
        }
        let at = program.before(op);
        let fill = fill.unwrap_or_else(|| program.build_zero(program.type_of(self.value), at));
        program.build_pad(self.value, fill, shape, self.sharding, at)
    }
    /// Replaces `op` by `result`, sliced at the high ends to `shape`.
    fn replace(&self, program: &mut Program, op: OpId, result: ValueId, shape: &[i64]) {
        let old = program.result(op, 0);
        let mut new = result;
        if program.type_of(old) != program.type_of(result) {
            let starts = vec![0; shape.len()];
            new = program.build_slice(result, &starts, shape, self.sharding, program.before(op));
        }
        program.replace_all_uses(old, new);
        program.erase_op(op);
    }
}

/// The most devices for which a pass makes an exchange; more than any machine has.
const MAX_LISTED_DEVICES: i64 = 1 << 24;

/// Whether the mesh has few enough devices to list them, and the numbers are small enough to be
/// offsets.
fn is_small(mesh: &Mesh, numbers: &[&[i64]]) -> bool {
    let is_small = |number: &i64| number.unsigned_abs() < 1 << 30;
    mesh.num_devices() <= MAX_LISTED_DEVICES && numbers.iter().copied().flatten().all(is_small)
}

/// The rule of `op` if it has permutation factors.
fn permuting_rule(
    program: &Program,
    rules: &dyn RuleSource,
    op: OpId,
    options: Options,
) -> Option<RuleId> {
    let is_candidate = program.op_name(op).starts_with("stablehlo.")
        && !program.has_traits(op, OpTraits::TERMINATOR);
    let rule = if is_candidate { rules.rule(program, op).get()? } else { return None };
    let row = &program.rules()[rule];
    let replicates = !row.permutation.is_empty() || is_random(program, op, options);
    (!row.is_custom && replicates).then_some(rule)
}

/// Whether `op` makes random bits that have to be computed on all devices.
fn is_random(program: &Program, op: OpId, options: Options) -> bool {
    !options.shards_random_bits && program.op_name(op) == "stablehlo.rng_bit_generator"
}

/// The shardings of the operands of `op`, then of the results.
fn shardings_of(program: &mut Program, op: OpId) -> Vec<ShardingId> {
    let operands = program.operands(op);
    let values: Vec<_> = operands.chain(program.op_results(op)).collect();
    values.into_iter().map(|value| program.sharding_of(value)).collect()
}

/// Reshards operands and results of `op` so that its permutation factors, or, if `all`, all
/// factors, are not sharded.
fn replicate(program: &mut Program, op: OpId, rule: &OpShardingRule, all: bool) -> Result<()> {
    let shardings = shardings_of(program, op);
    let Some(mesh) = common_mesh(program, &shardings) else {
        return Ok(());
    };
    if program.mesh(mesh).is_maximal() {
        return Ok(());
    }
    let given = shardings.iter().map(|&id| program.shardings().get(id));
    let mut projection = Projection::build(rule, given, program.mesh(mesh), true);
    let mut updates = vec![false; shardings.len()];
    let every: Vec<FactorId> = (0..rule.factor_sizes.len()).map(FactorId::from_index).collect();
    for &factor in if all { &every } else { &rule.permutation } {
        let communicates = match program.kind(op) {
            OpKind::Slice => needs_communication(program, op, factor, &shardings, mesh)?,
            OpKind::Pad => is_moved(program, op, factor, &shardings, mesh),
            _ => true,
        };
        if !communicates {
            continue;
        }
        projection.update(factor, &[], |tensor| updates[tensor] = true);
    }
    if updates.contains(&true) {
        let plan = Plan::from_table(program, &projection, (&shardings, mesh), rule, &updates);
        apply(program, op, &plan);
    }
    Ok(())
}

/// Whether pad `op` moves data between shards along the dim of `factor`.
fn is_moved(
    program: &Program,
    op: OpId,
    factor: FactorId,
    shardings: &[ShardingId],
    mesh: MeshId,
) -> bool {
    if !program.shardy().has(Change::HaloExchanges) {
        return true;
    }
    let axes = program.shardings().get(shardings[0]);
    let Some(axes) = axes.and_then(|sharding| sharding.dims.get(factor.index())) else {
        return true;
    };
    let shards = crate::axis::total_size(&axes.axes, program.mesh(mesh));
    let shape = |value| program.value_type(value).static_shape();
    let shapes = (shape(program.operand(op, 0)), shape(program.result(op, 0)));
    let (Some(from), Some(to)) = shapes else { return true };
    let padding = pad::Padding::of(program, op);
    padding.is_none_or(|padding| !padding.is_local(factor.index(), [&from, &to], shards))
}

/// Whether slice `op` moves data between shards along the dim of `factor`.
fn needs_communication(
    program: &Program,
    op: OpId,
    factor: FactorId,
    shardings: &[ShardingId],
    mesh: MeshId,
) -> Result<bool> {
    let [input, output] = shardings else { return Ok(true) };
    if input != output {
        let message = "the operand and the result of a slice have different shardings";
        let hint = "insert explicit reshards first";
        let problem = Diagnostic::new(Code::InvalidSharding, message).at_op(program, op);
        return Err(problem.with_hint(hint).into());
    }
    let dim = factor.index();
    let axes = program.shardings().get(*input).and_then(|sharding| sharding.dims.get(dim));
    let shards = axes.map_or(1, |dim| crate::axis::total_size(&dim.axes, program.mesh(mesh)));
    if shards <= 1 {
        return Ok(false);
    }
    let attributes = crate::mlir::signature_attributes(program, program.signature(op));
    let number = |name: &str| {
        let list = attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        list?.as_ints()?.get(dim).copied()
    };
    if number("start_indices") != Some(0) || number("strides").unwrap_or(1) != 1 {
        return Ok(true);
    }
    let size = |value| {
        let shape = program.value_type(value).static_shape();
        shape.and_then(|shape| shape.get(dim).copied())
    };
    let (Some(input), Some(output)) = (size(program.operand(op, 0)), size(program.result(op, 0)))
    else {
        return Ok(true);
    };
    let ceil = |size: i64| size / shards + i64::from(size % shards != 0);
    Ok(ceil(input) != ceil(output))
}
