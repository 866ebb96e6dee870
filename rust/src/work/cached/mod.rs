//! The work of each op of a program, cached by its signature and local shapes.

mod bodies;

use crate::index::{Id, IdVec, OpId, SignatureId, StrId, ValueId};
use crate::ir::{OpKind, Program};
use crate::memoization::Memo;
use crate::rules::{Shapes, SignatureView};
use crate::work::ops::estimate::{estimate, Estimate, Estimates};
use crate::work::ops::unit::Unit;
use crate::work::ops::{call_target, Family, Measure, Movement, Work};
use crate::work::spaces::{Space, Spaces};
use crate::work::tensors::Tensors;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The work of an op, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is counted.
    Counted(Work),
    /// It is that of the ops in its regions, or of its callee.
    Inside,
    /// It is a collective, which may compute as well.
    Collective(Work),
    /// It is not known, for this reason.
    Unknown(&'static str),
}

impl Outcome {
    /// The work, zero if it is not known.
    pub const fn work(&self) -> Work {
        match *self {
            Self::Counted(work) | Self::Collective(work) => work,
            Self::Inside | Self::Unknown(_) => Work::of_flops(0),
        }
    }
}

/// The properties that all ops of a name share.
#[derive(Clone, Copy)]
struct Named {
    /// Their family; `None` if they have none.
    family: Option<&'static Family>,
    /// How they move data; without a family they read all operands and write all results.
    movement: Movement,
    /// The unit that computes them; `None` if that depends on their shapes.
    unit: Option<Unit>,
    /// Whether they are aliases of their operands, without any work.
    is_free: bool,
}

/// The ops inside a function, in pre-order.
#[derive(Clone)]
struct Inside {
    ops: Rc<[OpId]>,
    /// Those that have regions.
    with_regions: Rc<[OpId]>,
}

/// The work of ops, computed once for each signature with local shapes.
pub struct Works<'a> {
    program: &'a Program,
    /// The local tensors.
    pub tensors: Tensors<'a>,
    /// In which memory they are.
    pub spaces: Spaces,
    /// The properties of the ops of each name, as an index in `names`.
    named: IdVec<StrId, u32>,
    names: Vec<Named>,
    /// Whether the values of each op have the types of its signature.
    as_signed: Vec<bool>,
    /// The outcomes and units of ops whose signature determines them, as far as they were asked for.
    by_signature: IdVec<SignatureId, (Option<Outcome>, Option<Unit>)>,
    /// By signature and local tensors.
    by_tensors: Memo<Option<Work>>,
    /// By the same.
    units: Memo<Unit>,
    /// By signature the last op whose work depends on its regions.
    last_with_body: IdVec<SignatureId, OpId>,
    /// The outcomes of ops whose work depends on their regions.
    known_bodies: FxHashMap<OpId, Outcome>,
    /// Their work, by signature, local shapes, and the same of the ops in their regions.
    by_bodies: Memo<Option<Work>>,
    /// The ops of functions.
    orders: FxHashMap<OpId, Inside>,
    estimates: Estimates,
}

impl Named {
    /// The properties of ops with the name of `op`.
    fn of(program: &Program, op: OpId) -> Self {
        let family = Family::of(program.op_name(op));
        let reads_shapes = Unit::reads_shapes(program, op);
        let unit = (!reads_shapes).then(|| Unit::of(program, op, None));
        let movement = family.map_or(Movement::Opaque, |family| family.movement);
        let has_work =
            !family.is_some_and(|known| matches!(known.measure, Measure::PerElement(0, 0)));
        // A custom call may have the work that a user registered.
        let is_call = program.kind(op) == OpKind::CustomCall;
        let is_free = movement == Movement::Alias && !has_work && !is_call;
        Self { family, movement, unit, is_free }
    }
}

impl<'a> Works<'a> {
    /// The work of the ops of `program`.
    pub fn new(program: &'a Program) -> Self {
        let tensors = Tensors::new(program);
        let mut named = IdVec::filled(u32::MAX, program.strings().len());
        let mut names = Vec::new();
        let mut as_signed = Vec::with_capacity(program.num_op_ids());
        for op in program.op_ids() {
            let is_there = program.parent_block(op).is_some() && !program.is_erased(op);
            as_signed.push(is_there && program.has_types_of_signature(op));
            let place = &mut named[program.op_name_id(op)];
            if *place == u32::MAX {
                *place = names.len() as u32;
                names.push(Named::of(program, op));
            }
        }
        Self {
            program,
            tensors,
            spaces: Spaces::new(program),
            named,
            names,
            as_signed,
            by_signature: IdVec::filled((None, None), program.signatures().len()),
            by_tensors: Memo::default(),
            units: Memo::default(),
            last_with_body: IdVec::filled(OpId::NONE, program.signatures().len()),
            known_bodies: FxHashMap::default(),
            by_bodies: Memo::default(),
            orders: FxHashMap::default(),
            estimates: Estimates::default(),
        }
    }
    /// The work of the ops of `program`, with the work of custom calls that a user registered.
    pub fn with_estimates(program: &'a Program, estimates: &Estimates) -> Self {
        Self { estimates: estimates.clone(), ..Self::new(program) }
    }
    /// The bytes that `value` takes in the memory `space`.
    #[inline]
    pub fn bytes_in(&mut self, space: Space, value: ValueId) -> u128 {
        if self.spaces.takes(space, value) {
            self.tensors.bytes(value)
        } else {
            0
        }
    }
    /// The family of `op`, `None` if it has none.
    #[inline]
    pub fn family(&self, op: OpId) -> Option<&'static Family> {
        self.named(op).family
    }
    #[inline]
    fn named(&self, op: OpId) -> &Named {
        &self.names[self.named[self.program.op_name_id(op)] as usize]
    }
    /// The ops inside `func`, the op of a function, in pre-order.
    pub fn ops_inside(&mut self, func: OpId) -> Rc<[OpId]> {
        Rc::clone(&self.inside(func).ops)
    }
    /// The ops with regions inside `func`, the op of a function, in pre-order.
    pub fn with_regions(&mut self, func: OpId) -> Rc<[OpId]> {
        Rc::clone(&self.inside(func).with_regions)
    }
    fn inside(&mut self, func: OpId) -> &Inside {
        let program = self.program;
        self.orders.entry(func).or_insert_with(|| {
            let (mut ops, mut with_regions) = (Vec::new(), Vec::new());
            let mut last = func;
            while let Some(op) = program.next_in_pre_order(last, func) {
                ops.push(op);
                if program.num_regions(op) > 0 {
                    with_regions.push(op);
                }
                last = op;
            }
            Inside { ops: ops.into(), with_regions: with_regions.into() }
        })
    }
    /// Whether `op` is an alias of its operand, without any work.
    #[inline]
    pub fn is_free(&self, op: OpId) -> bool {
        self.named(op).is_free
    }
    /// How `op` moves data; an op without a family reads its operands and writes its results.
    #[inline]
    pub fn movement(&self, op: OpId) -> Movement {
        self.named(op).movement
    }
    /// Whether the values of `op` have the types of its signature, and these determine its cost.
    #[inline]
    pub fn is_as_signed(&self, op: OpId) -> bool {
        self.as_signed[op.index()]
            && self.program.num_regions(op) == 0
            && self.program.kind(op) != OpKind::CustomCall
    }
    /// The work of one run of `op` on one device.
    pub fn of(&mut self, op: OpId) -> Outcome {
        if !self.is_as_signed(op) {
            return self.outcome(op);
        }
        let signature = self.program.signature(op);
        if let Some(known) = self.by_signature[signature].0 {
            return known;
        }
        let found = self.outcome(op);
        self.by_signature[signature].0 = Some(found);
        found
    }
    /// The work of one run of `op` on one device, zero if it is not known; and the unit that computes it.
    pub fn work_and_unit(&mut self, op: OpId) -> (Work, Unit) {
        let is_as_signed = self.is_as_signed(op);
        let signature = self.program.signature(op);
        if is_as_signed {
            if let (Some(outcome), Some(unit)) = self.by_signature[signature] {
                return (outcome.work(), unit);
            }
        }
        let (outcome, unit) = (self.of(op), self.unit(op));
        if is_as_signed {
            self.by_signature[signature] = (Some(outcome), Some(unit));
        }
        (outcome.work(), unit)
    }
    /// The work of one run of `op`, where that of its signature is not known.
    fn outcome(&mut self, op: OpId) -> Outcome {
        if let Some(known) = self.estimate(op) {
            return Outcome::Counted(known.work);
        }
        let Some(family) = self.family(op) else {
            return Outcome::Unknown("its cost is not known");
        };
        match family.measure {
            Measure::Inside => Outcome::Inside,
            Measure::Collective => Outcome::Collective(self.sums(op)),
            Measure::PerElement(0, 0) => Outcome::Counted(Work::default()),
            Measure::PerElement(flops, transcendentals) => {
                let Some(result) = self.program.op_results(op).next() else {
                    return Outcome::Counted(Work::default());
                };
                let tensor = self.tensors.of(result);
                if tensor.dims.is_none() {
                    return Outcome::Unknown(DYNAMIC);
                }
                let [flops, transcendentals] = [flops, transcendentals].map(u128::from);
                let once = Work { transcendentals, ..Work::of_flops(flops) };
                Outcome::Counted(once.times(tensor.elements))
            }
            Measure::Shapes(measure) => match self.measured(op, measure) {
                Some(work) => Outcome::Counted(work),
                None => Outcome::Unknown(self.reason(op)),
            },
            Measure::Bodies(measure) => self.of_bodies(op, measure),
        }
    }
    /// Whether the work of `op` is its own, and not that of the ops in its regions.
    pub fn is_measured(&mut self, op: OpId) -> bool {
        let measure = self.family(op).map(|family| &family.measure);
        matches!(measure, Some(Measure::Collective))
            || !matches!(self.of(op), Outcome::Inside | Outcome::Unknown(_))
    }
    /// Why the work of `op`, whose family has a measure, is unknown.
    fn reason(&mut self, op: OpId) -> &'static str {
        let tensors: Vec<ValueId> = self.tensors_of(op);
        if tensors.into_iter().any(|value| self.tensors.of(value).is_unknown) {
            return DYNAMIC;
        }
        match self.program.kind(op) {
            OpKind::CustomCall => "its target is not known",
            _ => "its attributes are not understood",
        }
    }
    /// The cost of `op`, a custom call, as a user registered it, or as the call carries it.
    pub fn estimate(&self, op: OpId) -> Option<Estimate> {
        if self.program.kind(op) != OpKind::CustomCall {
            return None;
        }
        let id = self.program.signature(op).get()?;
        let shapes = Shapes::new(&[], &[]);
        let given = self.estimates.get(&id).copied();
        given.or_else(|| estimate(&SignatureView::of(self.program, id, &shapes)))
    }
    /// The element type that `op` computes in.
    pub fn element_of(&mut self, op: OpId) -> StrId {
        let operand = self.program.operands(op).next();
        let value = operand.or_else(|| self.program.op_results(op).next());
        value.map_or(StrId::NONE, |value| self.tensors.of(value).element)
    }
    /// The unit that computes `op`.
    pub fn unit(&mut self, op: OpId) -> Unit {
        if let Some(unit) = self.named(op).unit {
            return unit;
        }
        if !self.is_as_signed(op) {
            return self.unit_of_tensors(op);
        }
        let signature = self.program.signature(op);
        if let Some(known) = self.by_signature[signature].1 {
            return known;
        }
        let found = self.unit_of_tensors(op);
        self.by_signature[signature].1 = Some(found);
        found
    }
    /// The unit that computes `op`, where that depends on its shapes.
    fn unit_of_tensors(&mut self, op: OpId) -> Unit {
        let program = self.program;
        let mut key = self.units.key();
        if self.describe(op, &mut key).is_none() {
            return Unit::default();
        }
        self.units.find(key).unwrap_or_else(|key| {
            let unit = self.with_view(op, |view| Some(Unit::of(program, op, Some(view))));
            self.units.add(key, unit.unwrap_or_default())
        })
    }
    /// The target of a custom call.
    pub fn target(&self, op: OpId) -> Option<String> {
        let id = self.program.signature(op).get()?;
        let shapes = Shapes::new(&[], &[]);
        let view = SignatureView::of(self.program, id, &shapes);
        call_target(&view).map(str::to_owned)
    }
    /// One flop for each element that an `all_reduce` or a `reduce_scatter` reduces, as XLA counts the former.
    fn sums(&mut self, op: OpId) -> Work {
        let name = self.program.op_name(op);
        if !name.ends_with(".all_reduce") && !name.ends_with(".reduce_scatter") {
            return Work::default();
        }
        let operands = self.program.operands(op);
        let elements: u128 = operands.map(|value| self.tensors.of(value).elements).sum();
        Work::of_flops(elements)
    }
    fn tensors_of(&self, op: OpId) -> Vec<ValueId> {
        let operands = self.program.operands(op);
        operands.chain(self.program.op_results(op)).collect()
    }
    fn measured(
        &mut self,
        op: OpId,
        measure: fn(&SignatureView<'_>) -> Option<Work>,
    ) -> Option<Work> {
        let mut key = self.by_tensors.key();
        self.describe(op, &mut key)?;
        self.by_tensors.find(key).unwrap_or_else(|key| {
            let work = self.with_view(op, measure);
            self.by_tensors.add(key, work)
        })
    }
    /// Writes the signature and the tensors of `op` into `key`; `None` if it has no signature.
    fn describe(&mut self, op: OpId, key: &mut Vec<u32>) -> Option<()> {
        let signature = self.program.signature(op).get()?;
        key.push(signature.index() as u32);
        for value in self.program.operands(op).chain(self.program.op_results(op)) {
            key.push(self.tensors.id(value));
        }
        Some(())
    }
    /// The result of `measure` for `op` with local shapes; `None` where shapes are not known.
    fn with_view<T>(
        &mut self,
        op: OpId,
        measure: impl Fn(&SignatureView<'_>) -> Option<T>,
    ) -> Option<T> {
        let program = self.program;
        let id = program.signature(op).get()?;
        let mut ids = Vec::new();
        for value in self.tensors_of(op) {
            ids.push(self.tensors.id(value));
        }
        if ids
            .iter()
            .any(|&id| self.tensors.row(id).is_unknown && self.tensors.row(id).dims.is_none())
        {
            return None;
        }
        let dims: Vec<Option<&[i64]>> =
            ids.iter().map(|&id| self.tensors.row(id).dims.as_deref()).collect();
        let (operands, results) = dims.split_at(program.num_operands(op));
        let shapes = Shapes::new(operands, results);
        measure(&SignatureView::of(program, id, &shapes))
    }
}

const DYNAMIC: &str = "its shapes are not known";
