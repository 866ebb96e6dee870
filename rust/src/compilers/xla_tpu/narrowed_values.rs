//! Which values are stored as `bf16`, found by [`super::bfloat16_propagation`] for all of a program with loops, and here for those
//! that are asked for.

use super::bfloat16_propagation::{has_loops, is_made_rounded, narrowed, rounds, Moving};
use crate::compilers::target::Compiler;
use crate::compilers::xla_cpu::by_signature::BySignature;
use crate::compilers::xla_cpu::passes::common_subexpressions::Equal;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{Program, ValueDef};
use crate::work::cached::Works;
use crate::work::tensors::Tensors;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Which values of a program are stored as `bf16`.
pub enum Narrowed<'p> {
    /// None.
    Nothing,
    /// It is found for each that is asked for, since nothing is carried by a loop.
    Single(Single<'p>),
    /// By value.
    All(Vec<bool>),
}

impl<'p> Narrowed<'p> {
    /// For the values of `functions`, given by their ops; of `equal` values the first is asked for.
    pub fn new(
        program: &'p Program,
        works: &mut Works<'_>,
        equal: &Equal,
        functions: &[OpId],
        compiler: Compiler,
    ) -> Self {
        if !compiler.rounds_operands() {
            return Self::Nothing;
        }
        if has_loops(program) {
            return Self::All(narrowed(program, works, equal, functions));
        }
        Self::Single(Single::new(program, equal.classes()))
    }
    /// For the results of collectives in `functions`. They equal no others, and what reads equals of what they are moved to reads
    /// what they are moved to by equal ops: without loops, no equals need be known.
    pub fn of_collectives(
        program: &'p Program,
        works: &mut Works<'_>,
        functions: &[OpId],
        compiler: Compiler,
    ) -> Self {
        if compiler.rounds_operands() && has_loops(program) {
            let equal = Equal::new(program, works, functions, compiler.is_for_hosts());
            return Self::new(program, works, &equal, functions, compiler);
        }
        if compiler.rounds_operands() {
            Self::Single(Single::new(program, FxHashMap::default()))
        } else {
            Self::Nothing
        }
    }
    /// Whether `value` is stored as `bf16`.
    pub fn has(&mut self, tensors: &mut Tensors<'_>, value: ValueId) -> bool {
        match self {
            Self::Nothing => false,
            Self::Single(single) => single.is_narrowed(tensors, value),
            Self::All(narrowed) => narrowed[value.index()],
        }
    }
}

/// Which values of a program without loops are stored as `bf16`: only what a value is moved to is looked at.
pub struct Single<'p> {
    program: &'p Program,
    products: BySignature<bool>,
    moving: Moving,
    /// The values that equal each other, for each that equals another one.
    equal: FxHashMap<ValueId, Rc<[ValueId]>>,
    /// By value whether something reads it in full precision, if that was asked for.
    is_exact: Vec<Option<bool>>,
}

impl<'p> Single<'p> {
    fn new(program: &'p Program, equal: FxHashMap<ValueId, Rc<[ValueId]>>) -> Self {
        let (products, moving) = (BySignature::new(program), Moving::of(program));
        let is_exact = vec![None; program.num_value_ids()];
        Self { program, products, moving, equal, is_exact }
    }
    fn is_narrowed(&mut self, tensors: &mut Tensors<'_>, value: ValueId) -> bool {
        let ValueDef::Result(op) = self.program.def(value) else { return false };
        tensors.element(value) == "f32"
            && is_made_rounded(self.program, &self.moving, op)
            && !self.is_exact(tensors, value)
    }
    fn is_exact(&mut self, tensors: &mut Tensors<'_>, value: ValueId) -> bool {
        if let Some(known) = self.is_exact[value.index()] {
            return known;
        }
        let mut open = vec![value];
        while let Some(&value) = open.last() {
            let before = open.len();
            let found = self.is_read_exactly(tensors, value, &mut open);
            self.is_exact[value.index()] = Some(found);
            if found || open.len() == before {
                open.truncate(before - 1);
            }
        }
        self.is_exact[value.index()] == Some(true)
    }
    /// Whether an op is known to read `value`, or its equals, in full precision; adds the values that are to be looked at first to
    /// `open`.
    fn is_read_exactly(
        &mut self,
        tensors: &mut Tensors<'_>,
        value: ValueId,
        open: &mut Vec<ValueId>,
    ) -> bool {
        let program = self.program;
        let equal = self.equal.get(&value).map_or(std::slice::from_ref(&value), |equal| equal);
        for user in equal.iter().flat_map(|&value| program.users(value)) {
            if rounds(program, tensors, &mut self.products, user) {
                continue;
            }
            if !self.moving.has(program, user) {
                return true;
            }
            for result in program.op_results(user) {
                match self.is_exact[result.index()] {
                    Some(true) => return true,
                    Some(false) => {}
                    None => open.push(result),
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::RuleSource;
    use crate::rules::Registry;
    use std::fmt::Write;

    const GROUPS: &str = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>";

    /// A program in which each of `gathers` arrays is gathered, moved at random, and read at random.
    fn text(gathers: usize, mut state: u64) -> String {
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let ty = "tensor<8x8xf32>";
        let mut text = format!("func.func @main(%a: tensor<4x8xf32>, %b: {ty}) -> {ty} {{\n");
        let mut names: Vec<String> = Vec::new();
        for gather in 0..gathers {
            let _ = writeln!(
                text,
                "%g{gather} = \"stablehlo.all_gather\"(%a) {{all_gather_dim = 0 : i64, {GROUPS}}} \
                 : (tensor<4x8xf32>) -> {ty}"
            );
            names.push(format!("%g{gather}"));
        }
        for number in 0..4 * gathers {
            let of = &names[random(names.len() as u64) as usize];
            let op = match random(8) {
                // Some of these are equal.
                0 | 1 => format!("stablehlo.transpose {of}, dims = [1, 0] : ({ty}) -> {ty}"),
                2 => format!("stablehlo.reverse {of}, dims = [0] : {ty}"),
                3 => format!("stablehlo.reduce_precision {of}, format = e8m23 : {ty}"),
                4 => format!(
                    "\"stablehlo.collective_permute\"({of}) {{source_target_pairs = \
                     dense<[[0, 1]]> : tensor<1x2xi64>}} : ({ty}) -> {ty}"
                ),
                5 => {
                    let to = "tensor<8x8xbf16>";
                    let _ = writeln!(text, "%c{number} = stablehlo.convert {of} : ({ty}) -> {to}");
                    continue;
                }
                6 if random(3) == 0 => {
                    let _ = writeln!(text, "%n{number} = stablehlo.negate {of} : {ty}");
                    continue;
                }
                _ => {
                    let precision = if random(4) == 0 { "HIGHEST" } else { "DEFAULT" };
                    let _ = writeln!(
                        text,
                        "%d{number} = stablehlo.dot_general {of}, %b, contracting_dims = [1] x [0], \
                         precision = [{precision}, {precision}] : ({ty}, {ty}) -> {ty}"
                    );
                    continue;
                }
            };
            let _ = writeln!(text, "%m{number} = {op}");
            names.push(format!("%m{number}"));
        }
        text + &format!("return %b : {ty}\n}}")
    }

    #[test]
    fn single_values_are_stored_as_all_are_together() {
        let (mut is_narrow, mut is_wide) = (false, false);
        for seed in 0..200 {
            let mut program = crate::mlir::parse(text(1 + seed as usize % 5, seed).into()).unwrap();
            Registry::builtin().sign(&mut program);
            let functions: Vec<OpId> =
                program.functions_in_order().iter().map(|&it| program.func_op(it)).collect();
            let mut works = Works::new(&program);
            let equal = Equal::new(&program, &mut works, &functions, false);
            let all = narrowed(&program, &mut works, &equal, &functions);
            let alone = FxHashMap::default();
            let mut singles = [alone, equal.classes()].map(|it| Single::new(&program, it));
            for op in program.pre_order(functions[0]) {
                let name = program.op_name(op);
                let is_collective =
                    name.ends_with("all_gather") || name.ends_with("collective_permute");
                for value in program.op_results(op) {
                    let found =
                        singles.each_mut().map(|it| it.is_narrowed(&mut works.tensors, value));
                    assert_eq!(found[1], all[value.index()], "{seed}");
                    assert!(!is_collective || found[0] == found[1], "{seed}");
                    is_narrow |= is_collective && found[0];
                    is_wide |= is_collective && !found[0];
                }
            }
        }
        assert!(is_narrow && is_wide);
    }
}
