//! Verifies the output of passes, so that its text can be parsed again.
//!
//! Passes can make a valid program invalid, for example if a function whose result is sharded over
//! an axis is called where that axis is manual. The reference's passes do that too; its verifier,
//! which runs after them, rejects the result.

use crate::attribute::{verify_sharding, MeshScope};
use crate::bitset::BitSet;
use crate::error::{Code, Diagnostic};
use crate::index::{FuncId, MeshId, OpId, ShardingId};
use crate::ir::{OpKind, Payload, Program};
use crate::shardy::Change;
use rustc_hash::FxHashMap;

/// Kinds of ops that restrict other ops, even after a pass has erased them.
const AT_RISK: [OpKind; 10] = [
    OpKind::ManualComputation,
    OpKind::NamedComputation,
    OpKind::AllGather,
    OpKind::AllSlice,
    OpKind::AllToAll,
    OpKind::CollectivePermute,
    OpKind::AllReduce,
    OpKind::ReduceScatter,
    OpKind::ShardedToUnreduced,
    OpKind::ReplicatedToUnreduced,
];

/// Whether `program`, the output of passes, may fail to parse again for other reasons than
/// shardings that are malformed by themselves.
pub fn is_at_risk(program: &Program) -> bool {
    AT_RISK.iter().any(|&kind| program.num_made(kind) > 0) || reduces(program)
}

/// Whether `program` has constraints or reshards that may change unreduced axes in a way that is
/// verified.
fn reduces(program: &Program) -> bool {
    let shardings = program.shardings();
    let kinds = [OpKind::ShardingConstraint, OpKind::Reshard];
    program.shardy().has(Change::UnreducedTransitions)
        && kinds.iter().any(|&kind| program.num_made(kind) > 0)
        && shardings.ids().any(|id| !shardings[id].unreduced.is_empty())
}

/// All errors in the shardings of `program` that do not depend on the ops around them.
pub fn malformed_shardings(program: &Program) -> Vec<Diagnostic> {
    let is_there = meshes_there(program);
    let problems = |id: ShardingId| {
        let sharding = &program.shardings()[id];
        let mesh = sharding.mesh.get()?;
        let gone = program.meshes()[mesh].symbol.filter(|_| !is_there.contains(mesh));
        let found = match gone {
            Some(symbol) => vec![program.unknown_mesh(program.str(symbol))],
            None => verify_sharding(sharding, program.mesh(mesh), None, program.shardy()),
        };
        (!found.is_empty()).then_some((id, found))
    };
    let malformed: FxHashMap<_, _> = program.shardings().ids().filter_map(problems).collect();
    if malformed.is_empty() {
        return Vec::new();
    }
    let made = Made { program, malformed };
    program.pre_order(program.module_op()).flat_map(|op| made.problems(op)).collect()
}

/// The meshes whose `sdy.mesh` ops are not erased.
fn meshes_there(program: &Program) -> BitSet<MeshId> {
    let mut found = BitSet::new(program.meshes().len());
    for op in program.repeated_ops_of(OpKind::Mesh) {
        if let Some(&Payload::Mesh(mesh)) = program.payload(op) {
            found.insert(mesh);
        }
    }
    found
}

/// Errors for calls whose types differ from those of the callee: export may turn different named
/// computations of the same name into one function.
pub fn mistyped_calls(program: &Program) -> Vec<Diagnostic> {
    let named = |func: FuncId| (program.func_name(func), func);
    let functions: FxHashMap<_, _> = program.functions_in_order().into_iter().map(named).collect();
    let problem = |call: OpId| {
        let Some(Payload::Call(callee)) = program.payload(call) else { return None };
        let mismatch = program.call_mismatch(call, *functions.get(callee)?)?;
        let problem = Diagnostic::new(Code::TypeMismatch, format!("'func.call' op {mismatch}"));
        Some(program.reported_at(call, problem))
    };
    program.pre_order(program.module_op()).filter_map(problem).collect()
}

/// A program, and the errors in all shardings of its table.
struct Made<'p> {
    program: &'p Program,
    malformed: FxHashMap<ShardingId, Vec<Diagnostic>>,
}

impl Made<'_> {
    /// The errors in the shardings on `op`, with the reference's messages.
    fn problems(&self, op: OpId) -> Vec<Diagnostic> {
        let program = self.program;
        let mut found = Vec::new();
        let mut note = |subject: &dyn Fn() -> String, sharding: ShardingId| {
            for problem in self.malformed.get(&sharding).into_iter().flatten() {
                let mut problem = problem.clone();
                problem.message.insert_str(0, &subject());
                found.push(program.reported_at(op, problem));
            }
        };
        if let Some(id) = program.function_of(op).get() {
            let body = program.func_body(id).get().map(|body| program.block_args(body));
            let args = body.into_iter().flatten().map(|arg| program.sharding(arg));
            for (index, arg) in args.enumerate() {
                note(&|| format!("'func.func' op arg {index} - "), arg);
            }
            for (index, result) in program.func_results(id).iter().enumerate() {
                note(&|| format!("'func.func' op result {index} - "), result.sharding);
            }
            return found;
        }
        if matches!(program.kind(op), OpKind::ManualComputation | OpKind::NamedComputation) {
            let body = program.op_regions(op).next().map(|region| program.region_entry(region));
            let args = body.filter(|body| body.is_some()).map(|body| program.block_args(body));
            let count = program.num_operands(op);
            for (index, arg) in args.into_iter().flatten().enumerate() {
                let subject = || program.sharding_subject(op, true, index, count);
                note(&subject, program.sharding(arg));
            }
        }
        let results = program.op_results(op);
        let count = results.len();
        for (index, result) in results.enumerate() {
            let subject = || program.sharding_subject(op, false, index, count);
            note(&subject, program.sharding(result));
        }
        found
    }
}
