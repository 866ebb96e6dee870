//! `sdy-unflatten-call-graph`: makes calls share functions that were cloned for each call.
//!
//! Functions are shared if they are clones of one function (`sdy.original_func_name`), are inside
//! the same manual axes, and have equal shardings of arguments and results. With
//! `dedup_functions_fully`, shardings are not compared, and the function with most calls is kept. A
//! later pass removes functions without calls.

use crate::context::Context;
use crate::error::Result;
use crate::index::{FuncId, Id, IdVec, OpId, ShardingId, StrId};
use crate::ir::{OpKind, Payload, Program, SymbolTable, ORIGINAL_NAME};
use crate::memoization::Memo;
use rustc_hash::FxHashMap;

const MANUAL_AXES: &str = "sdy.func_manual_axes";

/// Runs the pass on the module.
pub fn run(
    program: &mut Program,
    _context: &mut Context,
    dedup_functions_fully: bool,
) -> Result<()> {
    let symbols = SymbolTable::new(program);
    let calls = calls(program, &symbols);
    let mut classes = Classes::default();
    let kept = if dedup_functions_fully {
        most_called(program, &calls, &mut classes)
    } else {
        let mut first: FxHashMap<usize, FuncId> = FxHashMap::default();
        for &(_, func) in &calls {
            first.entry(classes.exact(program, func)).or_insert(func);
        }
        first
    };
    for (call, func) in calls {
        let class = if dedup_functions_fully {
            classes.loose(program, func)
        } else {
            classes.exact(program, func)
        };
        if let Some(&shared) = kept.get(&class).filter(|&&shared| shared != func) {
            let name = program.func_name(shared);
            program.set_payload(call, Payload::Call(name));
        }
    }
    for func in program.functions_in_order() {
        let op = program.func_op(func);
        program.remove_attr(op, ORIGINAL_NAME);
        program.remove_attr(op, MANUAL_AXES);
    }
    Ok(())
}

/// Every call with the function it calls, in program order.
fn calls(program: &mut Program, symbols: &SymbolTable) -> Vec<(OpId, FuncId)> {
    let calls = program.ops_in_pre_order(&[OpKind::Call]);
    let program = &*program;
    let callee = |op: OpId| match program.payload(op) {
        Some(Payload::Call(name)) => Some((op, symbols.function(*name)?)),
        _ => None,
    };
    calls.into_iter().filter_map(callee).collect()
}

/// For each class of functions with equal names and manual axes, the function to keep: the one with
/// most calls, the first in program order of several. Calls of functions with equal shardings are
/// added up.
fn most_called(
    program: &mut Program,
    calls: &[(OpId, FuncId)],
    classes: &mut Classes,
) -> FxHashMap<usize, FuncId> {
    let mut kept: FxHashMap<usize, FuncId> = FxHashMap::default();
    for &(_, func) in calls {
        kept.entry(classes.loose(program, func)).or_insert(func);
    }
    let mut counts: FxHashMap<usize, u64> = FxHashMap::default();
    for &(_, func) in calls {
        let exact = classes.exact(program, func);
        let count = counts.entry(exact).or_default();
        *count += 1;
        let count = *count;
        let loose = classes.loose(program, func);
        let Some(&current) = kept.get(&loose) else { continue };
        let current = classes.exact(program, current);
        if count > counts.get(&current).copied().unwrap_or(0) {
            kept.insert(loose, func);
        }
    }
    kept
}

/// Numbers the classes of functions; each function is classified once.
#[derive(Default)]
struct Classes {
    /// By the key of a class, see [`Classes::number`].
    numbers: Memo<usize>,
    exact: IdVec<FuncId, Option<usize>>,
    loose: IdVec<FuncId, Option<usize>>,
}

impl Classes {
    /// The class of `func` by name, manual axes and shardings.
    fn exact(&mut self, program: &mut Program, func: FuncId) -> usize {
        if let Some(&Some(known)) = self.exact.get(func) {
            return known;
        }
        let args = program.func_arg_shardings(func);
        let results = program.func_result_shardings(func);
        let number = self.number(program, func, &[&args, &results]);
        remember(&mut self.exact, func, number)
    }
    /// The class of `func` by name and manual axes.
    fn loose(&mut self, program: &mut Program, func: FuncId) -> usize {
        if let Some(&Some(known)) = self.loose.get(func) {
            return known;
        }
        let number = self.number(program, func, &[]);
        remember(&mut self.loose, func, number)
    }
    /// The class of functions with the name and the manual axes of `func`, and these lists of
    /// shardings. In the key, each list is preceded by its length.
    fn number(&mut self, program: &mut Program, func: FuncId, lists: &[&[ShardingId]]) -> usize {
        let (name, axes) = origin(program, func);
        let mut key = self.numbers.key();
        key.extend([name.index() as u32, axes.index() as u32]);
        for list in lists {
            key.push(list.len() as u32);
            key.extend(list.iter().map(|sharding| sharding.index() as u32));
        }
        let next = self.numbers.len();
        self.numbers.find(key).unwrap_or_else(|key| self.numbers.add(key, next))
    }
}

fn remember(known: &mut IdVec<FuncId, Option<usize>>, func: FuncId, number: usize) -> usize {
    if known.len() <= func.index() {
        known.resize(func.index() + 1, None);
    }
    known[func] = Some(number);
    number
}

/// The name of the function that `func` is a clone of, and the text of the manual axes around it.
fn origin(program: &mut Program, func: FuncId) -> (StrId, StrId) {
    let axes = program.attr(program.func_op(func), MANUAL_AXES).map(str::to_owned);
    let axes = axes.map_or(StrId::NONE, |axes| program.intern(&axes));
    (program.original_name(func), axes)
}
