//! Qualified names, which denote one value of a function: `%0 do %8`.
//!
//! MLIR reuses names in regions that do not contain each other: each loop of a function has an
//! `%iterArg`, and the condition and the body of a loop may both have a `%8`. The name of such a
//! value is qualified by the op whose region it is in, named by the op's result, and if necessary
//! by the region.
//!
//! An unqualified name denotes the value of that name outside of all regions, or else the only
//! value of that name. After the name of an op's result, `%0 %8`, it denotes the value in a region
//! of that op, but not in nested ops; after the name of a region, `%0 do %8` or `%7 region 1 %8`,
//! the value in that region. An op without results is named by its op name, `stablehlo.case`, and
//! the second such op of the region `stablehlo.case#1`. If condition and body of a loop share an
//! argument, it is that of the body, unless the name says `cond`.

use crate::index::{FuncId, Id, OpId, RegionId, ValueId};
use crate::ir::{OpKind, Program, ValueDef};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::OnceLock;

/// The most values that [`Denoted::Several`] lists.
const MOST_LISTED: usize = 3;

/// What a name denotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Denoted {
    /// One value.
    Value(ValueId),
    /// No value.
    Nothing,
    /// Several values; the unambiguous names of some of them.
    Several(Vec<String>),
}

impl Denoted {
    /// The value, if there is exactly one.
    pub fn value(self) -> Option<ValueId> {
        match self {
            Self::Value(value) => Some(value),
            Self::Nothing | Self::Several(_) => None,
        }
    }
}

/// The names of the values of a program that does not change. Each function is indexed when it is
/// first needed.
#[derive(Default)]
pub struct QualifiedNames {
    functions: OnceLock<FxHashMap<OpId, OnceLock<Index>>>,
}

impl QualifiedNames {
    fn index(&self, program: &Program, func: OpId) -> Option<&Index> {
        let functions = self.functions.get_or_init(|| {
            let all = program.functions_in_order().into_iter();
            all.map(|func| (program.func_op(func), OnceLock::new())).collect()
        });
        Some(functions.get(&func)?.get_or_init(|| Index::new(program, func)))
    }
    /// The value that `path`, `%12` or `%0 do %8`, denotes in `function` of `program`.
    pub fn find(&self, program: &Program, function: FuncId, path: &str) -> Denoted {
        let index = self.index(program, program.func_op(function));
        index.map_or(Denoted::Nothing, |index| index.find(program, path))
    }
    /// The shortest unambiguous name of `value` of `program` in its function; its plain name if it
    /// is in no function.
    pub fn name(&self, program: &Program, value: ValueId) -> String {
        let owner = match program.def(value) {
            ValueDef::Result(op) => program.parent_op(op),
            ValueDef::Arg(block) => Some(program.block_parent_op(block)),
        };
        let is_inside = owner.is_some_and(|owner| program.kind(owner) != OpKind::Func);
        let func = Some(value).filter(|_| is_inside);
        let func = func.and_then(|value| program.function_of_value(value).get());
        match func.and_then(|func| self.index(program, program.func_op(func))) {
            Some(index) => index.name(program, value),
            None => program.value_name(value),
        }
    }
}

/// The values and ops of a function by name.
struct Index {
    func: OpId,
    /// Values by the hash of their name; values with one hash are sorted by the op that they are
    /// in.
    values: Vec<(u64, ValueId)>,
    /// Ops with regions and without results, with their names: usually none.
    ops: FxHashMap<OpId, String>,
    by_name: FxHashMap<String, Vec<OpId>>,
}

/// Where the next part of a path is looked up: in the regions of an op, or in one of them.
#[derive(Clone, Copy)]
struct Scope {
    op: OpId,
    region: Option<RegionId>,
}

impl Index {
    fn new(program: &Program, func: OpId) -> Self {
        let values = program.values_of(func).into_iter();
        let hash = |value| FxBuildHasher.hash_one(&*program.value_name(value));
        let mut values: Vec<(u64, ValueId)> = values.map(|value| (hash(value), value)).collect();
        let place = |value| {
            let region = region_of_value(program, value);
            (program.region_op(region), region, value)
        };
        values.sort_unstable_by(|one, other| {
            one.0.cmp(&other.0).then_with(|| place(one.1).cmp(&place(other.1)))
        });
        let mut counts: FxHashMap<(RegionId, &str), usize> = FxHashMap::default();
        let (mut ops, mut by_name) = (FxHashMap::default(), FxHashMap::default());
        for op in program.pre_order(func) {
            if op == func || program.num_regions(op) == 0 || program.num_results(op) > 0 {
                continue;
            }
            let name = program.op_name(op);
            let count = counts.entry((region_of_op(program, op), name)).or_default();
            let name = if *count == 0 { name.to_owned() } else { format!("{name}#{count}") };
            *count += 1;
            by_name.entry(name.clone()).or_insert_with(Vec::new).push(op);
            ops.insert(op, name);
        }
        Self { func, values, ops, by_name }
    }
    fn find(&self, program: &Program, path: &str) -> Denoted {
        let mut scope = Scope { op: self.func, region: None };
        let mut tokens = path.split_whitespace().peekable();
        while let Some(name) = tokens.next() {
            let is_last = tokens.peek().is_none();
            if is_last {
                let found = self.look_up(program, scope, name);
                return self.denoted(program, &found, None);
            }
            let ops = self.ops_called(program, scope, name);
            let [op] = ops[..] else { return self.denoted(program, &[], Some(&ops)) };
            let region = match tokens.peek() {
                Some(&"region") => {
                    tokens.next();
                    match tokens.next().and_then(|text| text.parse().ok()) {
                        Some(number) if number < program.num_regions(op) => Some(number),
                        _ => return Denoted::Nothing,
                    }
                }
                Some(label) => region_called(program, op, label),
                None => None,
            };
            if tokens.peek().is_some_and(|label| region_called(program, op, label).is_some()) {
                tokens.next();
            }
            scope = Scope { op, region: region.map(|number| program.region(op, number)) };
        }
        Denoted::Nothing
    }
    /// The values called `name` in `scope`: none, one, or several if the name is ambiguous.
    fn look_up(&self, program: &Program, scope: Scope, name: &str) -> Vec<ValueId> {
        let hash = FxBuildHasher.hash_one(name);
        let is_called = |value: &ValueId| program.value_name(*value) == name;
        let place = |value| {
            let region = region_of_value(program, value);
            (program.region_op(region), scope.region.map(|_| region))
        };
        let wanted = (hash, (scope.op, scope.region));
        let first = self.values.partition_point(|&(hash, value)| (hash, place(value)) < wanted);
        let inside = self.values[first..].iter();
        let inside = inside.take_while(|&&(hash, value)| (hash, place(value)) == wanted);
        let mut inside = inside.map(|&(_, value)| value).filter(is_called);
        if scope.region.is_some() {
            return inside.take(MOST_LISTED).collect();
        }
        let found: Vec<ValueId> =
            inside.by_ref().filter(|&value| !is_shared(program, value)).take(MOST_LISTED).collect();
        if !found.is_empty() || scope.op != self.func {
            return found;
        }
        let first = self.values.partition_point(|&(other, _)| other < hash);
        let all = self.values[first..].iter().take_while(|&&(other, _)| other == hash);
        let all = all.map(|&(_, value)| value).filter(is_called);
        all.filter(|&value| !is_shared(program, value)).take(MOST_LISTED).collect()
    }
    /// The ops in `scope` that are called `name`: by their results, or by op name.
    fn ops_called(&self, program: &Program, scope: Scope, name: &str) -> Vec<OpId> {
        if name.starts_with('%') {
            let mut values = self.look_up(program, scope, name);
            if values.is_empty() {
                values = self.look_up(program, scope, &format!("{name}#0"));
            }
            let ops = values.into_iter().filter_map(|value| program.defining_op(value));
            return ops.collect();
        }
        let known = self.by_name.get(name).into_iter().flatten().copied();
        let is_inside = |&op: &OpId| {
            let region = region_of_op(program, op);
            match scope.region {
                Some(wanted) => region == wanted,
                None => program.region_op(region) == scope.op,
            }
        };
        known.filter(is_inside).take(MOST_LISTED).collect()
    }
    /// The only one of `values`; else that there are none or several. `ops` are the candidates for
    /// an op in the path, if that is ambiguous.
    fn denoted(&self, program: &Program, values: &[ValueId], ops: Option<&[OpId]>) -> Denoted {
        match (values, ops.unwrap_or_default()) {
            (&[value], []) => Denoted::Value(value),
            ([], []) => Denoted::Nothing,
            (values, ops) => {
                let values = values.iter().map(|&value| self.name(program, value));
                let ops = ops.iter().map(|&op| self.op_path(program, op));
                Denoted::Several(values.chain(ops).collect())
            }
        }
    }
    fn name(&self, program: &Program, value: ValueId) -> String {
        let name = program.value_name(value);
        let region = region_of_value(program, value);
        self.path(program, region, &name, &|scope| {
            self.look_up(program, scope, &name)[..] == [value]
        })
    }
    /// The shortest unambiguous name of `op`, which has regions.
    fn op_path(&self, program: &Program, op: OpId) -> String {
        let region = region_of_op(program, op);
        let name: Cow<'_, str> = match (program.op_results(op).next(), self.ops.get(&op)) {
            (Some(first), _) => {
                let name = program.value_name(first);
                name.strip_suffix("#0").map(str::to_owned).unwrap_or(name).into()
            }
            (None, Some(name)) => name.into(),
            (None, None) => program.op_name(op).into(),
        };
        self.path(program, region, &name, &|scope| {
            self.ops_called(program, scope, &name)[..] == [op]
        })
    }
    /// `name`, the name of something in `region`, with the shortest prefix that makes it
    /// unambiguous; `is_it` says whether `name` is unambiguous in a scope.
    fn path(
        &self,
        program: &Program,
        region: RegionId,
        name: &str,
        is_it: &dyn Fn(Scope) -> bool,
    ) -> String {
        if is_it(Scope { op: self.func, region: None }) {
            return name.to_owned();
        }
        let op = program.region_op(region);
        if op == self.func {
            return name.to_owned();
        }
        let way = self.op_path(program, op);
        if is_it(Scope { op, region: None }) {
            return format!("{way} {name}");
        }
        let number = region.index() - program.region(op, 0).index();
        match region_label(program, op, number) {
            Some(label) => format!("{way} {label} {name}"),
            None => format!("{way} region {number} {name}"),
        }
    }
}

/// The label of a region of `op` in the text.
fn region_label(program: &Program, op: OpId, number: usize) -> Option<&'static str> {
    let labels = ["cond", "do"];
    (program.kind(op) == OpKind::While).then(|| labels.get(number).copied()).flatten()
}

/// The index of the region of `op` with this `label` in the text.
fn region_called(program: &Program, op: OpId, label: &str) -> Option<usize> {
    (0..program.num_regions(op).min(2))
        .find(|&number| region_label(program, op, number) == Some(label))
}

fn region_of_value(program: &Program, value: ValueId) -> RegionId {
    match program.def(value) {
        ValueDef::Result(op) => region_of_op(program, op),
        ValueDef::Arg(block) => program.block_region(block),
    }
}

/// The region that `op` is in.
fn region_of_op(program: &Program, op: OpId) -> RegionId {
    program.block_region(program.parent_block(op))
}

/// Whether `value` is an argument of a loop's condition, and the argument of the body at the same
/// index has the same name: the text has one name for both.
fn is_shared(program: &Program, value: ValueId) -> bool {
    let ValueDef::Arg(block) = program.def(value) else { return false };
    let op = program.block_parent_op(block);
    if program.kind(op) != OpKind::While
        || program.num_regions(op) != 2
        || program.block_region(block) != program.region(op, 0)
    {
        return false;
    }
    let index = program.value_index(value);
    let body = program.region_entry(program.region(op, 1)).get();
    let other = body.and_then(|body| program.block_args(body).nth(index));
    other.is_some_and(|other| program.value_name(other) == program.value_name(value))
}
