//! Dead code: finds and erases ops that have no side effects and whose results nothing uses.

use super::{Op, OpKind, OpTraits, Program};
use crate::index::{Id, OpId, ValueId};

/// Which unused ops without side effects are erased.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unused {
    /// All of them.
    All,
    /// All but collectives.
    WithoutCollectives,
}

impl Program {
    /// The ops in the program without used results, in the order of their ids.
    pub fn unused_ops(&self) -> impl Iterator<Item = OpId> + '_ {
        let is_unused = |row: &Op| {
            let results = row.first_result.index()..;
            row.parent.is_some()
                && !row.is_erased
                && results
                    .take(row.num_results as usize)
                    .all(|value| self.values[ValueId::from_index(value)].first_use.is_none())
        };
        let rows = self.ops.ids().zip(self.ops.iter());
        rows.filter(move |(_, row)| is_unused(row)).map(|(op, _)| op)
    }
    /// Erases ops that have no side effects and whose results are not used.
    pub fn erase_unused(&mut self, unused: Unused) {
        let may_erase = |op: &OpId| !self.has_traits(*op, OpTraits::TERMINATOR);
        let found = self.unused_ops().filter(may_erase).filter(|&op| self.is_linked(op));
        let mut open: Vec<OpId> = found.collect();
        while let Some(op) = open.pop() {
            let is_kept = self.is_erased(op)
                || self.op_results(op).any(|result| self.has_uses(result))
                || !self.pre_order(op).all(|inner| is_free_of_effects(self, inner, unused));
            if is_kept {
                continue;
            }
            // What it reads may not be used by any other op.
            for inner in self.pre_order(op) {
                open.extend(self.operands(inner).filter_map(|value| self.defining_op(value)));
            }
            self.erase_op(op);
        }
    }
}

/// Whether `op`, apart from ops inside it, has no side effects, is not a symbol, and does not
/// affect propagation.
fn is_free_of_effects(program: &Program, op: OpId, unused: Unused) -> bool {
    match program.kind(op) {
        OpKind::Module
        | OpKind::Func
        | OpKind::Mesh
        | OpKind::Call
        | OpKind::Composite
        | OpKind::ShardingGroup
        | OpKind::DataFlowEdge
        | OpKind::FuncDataFlowEdge => false,
        OpKind::CustomCall => {
            program.attr(op, "has_side_effect").is_none_or(|value| value.trim() != "true")
        }
        OpKind::Other => {
            let is_known = program.traits(op).is_some();
            let name = program.op_name(op);
            let is_kept = unused == Unused::WithoutCollectives && COLLECTIVES.contains(&name);
            is_known && !is_kept && !EFFECTS.contains(&name)
        }
        _ => true,
    }
}

/// Ops of kind `Other` with side effects; XLA treats `rng` as one of these.
const EFFECTS: [&str; 8] = [
    "func.call_indirect",
    "stablehlo.async_done",
    "stablehlo.async_start",
    "stablehlo.infeed",
    "stablehlo.outfeed",
    "stablehlo.recv",
    "stablehlo.rng",
    "stablehlo.send",
];

/// Collectives.
const COLLECTIVES: [&str; 7] = [
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.collective_reduce",
    "stablehlo.reduce_scatter",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the ops that are left of those in `body`, without terminators, in pre-order.
    fn left(body: &str, unused: Unused) -> Vec<String> {
        let text = format!("func.func @f(%a: tensor<i32>) -> tensor<i32> {{\n{body}\n}}");
        let mut program = crate::mlir::parse(text.into()).unwrap();
        program.erase_unused(unused);
        let func = program.func_op(program.functions_in_order()[0]);
        let ops = program.pre_order(func).skip(1);
        let ops = ops.filter(|&op| !program.has_traits(op, OpTraits::TERMINATOR));
        ops.map(|op| program.op_name(op).to_owned()).collect()
    }

    #[test]
    fn what_only_unused_ops_use_is_unused() {
        let body = "%0 = stablehlo.negate %a : tensor<i32>\n\
                    %1 = stablehlo.add %0, %0 : tensor<i32>\n\
                    %2 = stablehlo.abs %a : tensor<i32>\n\
                    %3 = stablehlo.multiply %1, %2 : tensor<i32>\n\
                    return %2 : tensor<i32>";
        assert_eq!(left(body, Unused::All), ["stablehlo.abs"]);
    }

    #[test]
    fn collectives_are_kept_if_asked_for() {
        let body = "%0 = stablehlo.negate %a : tensor<i32>\n\
                    %1 = \"stablehlo.collective_permute\"(%0) {source_target_pairs = \
                    dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<i32>) -> tensor<i32>\n\
                    return %a : tensor<i32>";
        let kept = ["stablehlo.negate", "stablehlo.collective_permute"];
        assert_eq!(left(body, Unused::WithoutCollectives), kept);
        assert!(left(body, Unused::All).is_empty());
    }

    #[test]
    fn ops_around_effects_are_kept_and_captured_values_with_them() {
        let case = |inside: &str| {
            format!(
                "%0 = stablehlo.negate %a : tensor<i32>\n\
                 %1 = \"stablehlo.case\"(%a) ({{\n{inside}\n\
                 stablehlo.return %0 : tensor<i32> }}) : (tensor<i32>) -> tensor<i32>\n\
                 return %a : tensor<i32>"
            )
        };
        assert!(left(&case("%2 = stablehlo.abs %0 : tensor<i32>"), Unused::All).is_empty());
        let outfeed = "%2 = stablehlo.create_token : !stablehlo.token\n\
                       %3 = stablehlo.abs %0 : tensor<i32>\n\
                       %4 = \"stablehlo.outfeed\"(%0, %2) : (tensor<i32>, !stablehlo.token) \
                       -> !stablehlo.token";
        let kept =
            ["stablehlo.negate", "stablehlo.case", "stablehlo.create_token", "stablehlo.outfeed"];
        assert_eq!(left(&case(outfeed), Unused::All), kept);
    }
}
