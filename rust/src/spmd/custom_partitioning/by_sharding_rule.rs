//! Calls with only a sharding rule: each device makes the call on its shards.
//!
//! - Pass-through factors that every result has keep the sharding of the operands, or, if no operand is sharded along one, that of
//!   the results.
//! - Along reduction factors devices compute partial results, which are all-reduced: JAX leaves that to the `partition` callback.
//! - Along all other factors tensors are replicated, since the rule does not say what devices would have to exchange.

use super::manual::{build, free_axes, replace};
use super::mesh_of;
use crate::attribute::write_string;
use crate::axis::{any_overlap, AxisRef};
use crate::index::{FactorId, Id, MeshId, OpId, ShardingId, TypeId, ValueId};
use crate::ir::{NewOp, OpKind, Program};
use crate::layout::Layout;
use crate::op_sharding_rule::OpShardingRule;
use crate::projection::Projection;
use crate::sharding::TensorSharding;

/// Replaces `call`, whose rule is `rule`, by a manual computation with the call on shards. The call stays if all mesh axes around it
/// are manual, or the shape of a tensor is not known.
pub(super) fn put(program: &mut Program, call: OpId, rule: &OpShardingRule) -> Option<()> {
    let mesh = mesh_of(program, call)?;
    if free_axes(program, call, mesh).is_empty() {
        return None;
    }
    let (mut operands, mut results) = shardings(program, call, mesh, rule);
    let types = |program: &mut Program, values: Vec<ValueId>, all: &[TensorSharding]| {
        let local = values.iter().zip(all).map(|(&value, own)| local_type(program, value, own));
        local.collect::<Option<Vec<TypeId>>>()
    };
    let values = program.operands(call).collect();
    let taken = types(program, values, &operands)?;
    let values = program.op_results(call).collect();
    let made = types(program, values, &results)?;
    let (new, block) = build(program, call, mesh, &taken);
    let args: Vec<ValueId> = program.block_args(block).collect();
    let attrs = attributes(program, call);
    let mut local = NewOp::of_kind(OpKind::CustomCall, &args, &made);
    for (name, value) in &attrs {
        local = local.attr(name, value.as_str());
    }
    let at = crate::ir::InsertPoint::at(crate::ir::Place::End(block)).with_loc(program.loc(call));
    let local = program.build(local, at);
    let returned: Vec<ValueId> = program.op_results(local).collect();
    program.build(NewOp::of_kind(OpKind::SdyReturn, &returned, &[]), at);
    let mut interned = |all: &mut Vec<TensorSharding>| -> Vec<ShardingId> {
        all.drain(..).map(|sharding| program.intern_sharding(sharding)).collect()
    };
    let (operands, results) = (interned(&mut operands), interned(&mut results));
    replace(program, (call, new, block), mesh, &operands, &results);
    Some(())
}

/// The shardings of the operands and results of the call on shards.
fn shardings(
    program: &Program,
    call: OpId,
    mesh: MeshId,
    rule: &OpShardingRule,
) -> (Vec<TensorSharding>, Vec<TensorSharding>) {
    let values: Vec<ValueId> = program.operands(call).chain(program.op_results(call)).collect();
    let given: Vec<_> = values.iter().map(|&value| program.visible_sharding(value)).collect();
    let known = program.mesh(mesh);
    let mut table = Projection::build(rule, given.iter().map(Option::as_deref), known, true);
    let mut used: Vec<AxisRef> = Vec::new();
    let mut terms: Vec<AxisRef> = Vec::new();
    for factor in (0..rule.num_factors()).map(FactorId::from_index) {
        let is_term = rule.reduction.binary_search(&factor).is_ok();
        let stays = is_term
            || rule.is_pass_through(factor)
                && rule.operands.iter().any(|operand| operand.contains(factor))
                && rule.results.iter().all(|result| result.contains(factor));
        let mut axes: Vec<AxisRef> = Vec::new();
        if stays {
            let mut along = table.along(factor).filter(|row| !row.axes.is_empty());
            axes.extend(along.next().into_iter().flat_map(|row| row.axes.iter().copied()));
            let end = axes.iter().position(|&axis| any_overlap(&[axis], &used));
            axes.truncate(end.unwrap_or(axes.len()));
        }
        used.extend(&axes);
        if is_term {
            terms.extend(&axes);
        }
        table.update(factor, &axes, |_| ());
    }
    crate::axis::sort_and_merge(&mut terms, known);
    let rows = table.tensors.iter().zip(rule.tensors());
    let mut all = rows.map(|(row, dims)| row.to_sharding(dims, &rule.factor_sizes, mesh, known));
    let operands: Vec<TensorSharding> = all.by_ref().take(rule.operands.len()).collect();
    let results = all.map(|sharding| TensorSharding { unreduced: terms.clone(), ..sharding });
    (operands, results.collect())
}

/// The type of the shards of `value` with `sharding`.
fn local_type(program: &mut Program, value: ValueId, sharding: &TensorSharding) -> Option<TypeId> {
    let ty = program.type_of(value);
    let shape = program.types()[ty].static_shape()?;
    let local = Layout::new(sharding, program.mesh(sharding.mesh)).local_shape(&shape);
    Some(program.tensor_type(&local, ty))
}

/// The attributes of `call` in the generic form, without its sharding rule.
fn attributes(program: &Program, call: OpId) -> Vec<(String, String)> {
    let own = program.op_attrs(call).iter();
    let mut all: Vec<(String, String)> = own
        .map(|attr| (program.str(attr.name).to_owned(), program.text().get(attr.value).to_owned()))
        .filter(|(name, _)| !name.starts_with("sdy.") && name != "call_target_name")
        .collect();
    let mut target = String::new();
    write_string(&mut target, super::TARGET);
    all.push(("call_target_name".to_owned(), target));
    all
}
