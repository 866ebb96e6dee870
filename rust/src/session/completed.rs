//! The shardings of arguments and results after export, derived from the shardings at the end of a replay.
//!
//! After propagation only three passes change these shardings, each sharding by itself: two trim dims that do not divide and
//! sub-axes, one closes dims. Another one gives a result without sharding that of the returned value. So they are known without
//! exporting the program.

use super::prepared::PortBytes;
use super::{annotation, Prepared, Target};
use crate::export::remove_sub_axes_in_input_output_shardings::with_whole_axes;
use crate::export::update_non_divisible_input_output_shardings::even;
use crate::index::{FuncId, ShardingId, TypeId};
use crate::ir::{OpKind, Program, ValueDef};
use crate::propagation::observe::Slot;
use crate::propagation::replay::Replayed;
use crate::sharding::TensorSharding;
use crate::shardy::Change;
use rustc_hash::FxHashMap;

impl Prepared {
    /// Whether [`Prepared::completed_port`] is correct for `replayed`, and the program can be exported.
    pub fn is_readable(&self, replayed: &Replayed) -> bool {
        self.is_readable && replayed.added().iter().all(|sharding| sharding.unreduced.is_empty())
    }
    /// The sharding that an argument or a result of the main function has in the completed program.
    pub fn completed_port(&self, replayed: &Replayed, slot: Slot) -> Option<TensorSharding> {
        let source = self.source(replayed, slot);
        let propagated = self.recording.sharding_in(replayed, &self.shardings, source)?;
        Some(self.completed(propagated, self.type_of(slot)))
    }
    /// The slot whose propagated sharding `slot` has: for a result without sharding that of the returned value, as in
    /// `sdy-propagate-to-func-results`.
    fn source(&self, replayed: &Replayed, slot: Slot) -> Slot {
        let Slot::FuncResult(func, index) = slot else { return slot };
        let imported = self.imported();
        if !imported.shardy().has(Change::MainFuncResults)
            || self.recording.sharding(replayed, slot).is_some()
        {
            return slot;
        }
        let returns = imported.region_terminator(imported.func_op(func), 0);
        let returned = returns
            .filter(|&op| imported.kind(op) == OpKind::FuncReturn)
            .filter(|&op| index < imported.num_operands(op))
            .and_then(|op| imported.sharding_holder(imported.operand(op, index)))
            .map(Slot::Value);
        let is_copied = |&source: &Slot| {
            let sharding = self.recording.sharding_in(replayed, &self.shardings, source);
            sharding.is_some_and(|sharding| !imported.mesh(sharding.mesh).is_maximal())
        };
        returned.filter(is_copied).unwrap_or(slot)
    }
    fn type_of(&self, slot: Slot) -> TypeId {
        match slot {
            Slot::Value(value) => self.imported().type_of(value),
            Slot::FuncResult(func, index) => self.imported().func_results(func)[index].ty,
        }
    }
    /// The sharding after export of an argument or a result of type `ty` with the sharding `propagated`.
    fn completed(&self, propagated: &TensorSharding, ty: TypeId) -> TensorSharding {
        if self.how.keep_non_divisible_on_io {
            return propagated.closed();
        }
        let imported = self.imported();
        let shape = imported.types()[ty].static_shape();
        let trimmed = shape.map(|shape| even(propagated, &shape, imported.mesh(propagated.mesh)));
        let trimmed = trimmed.as_ref().unwrap_or(propagated);
        with_whole_axes(trimmed).as_ref().unwrap_or(trimmed).closed()
    }
    /// The shardings that the arguments, then the results of the main function have in the completed program.
    pub fn completed_ports(&self, replayed: &Replayed) -> Vec<Option<TensorSharding>> {
        // Most ports have a type and a sharding that others have, too.
        let mut known: FxHashMap<(TypeId, &TensorSharding), TensorSharding> = FxHashMap::default();
        let mut completed = |slot| {
            let source = self.source(replayed, slot);
            let propagated = self.recording.sharding_in(replayed, &self.shardings, source)?;
            let ty = self.type_of(slot);
            let known = known.entry((ty, propagated));
            Some(known.or_insert_with(|| self.completed(propagated, ty)).clone())
        };
        self.ports().map(&mut completed).collect()
    }
    /// The bytes that one device holds of the arguments, and of the results of the main function, in the completed program. They
    /// are updated from the recorded run where shardings differ.
    pub fn port_bytes(&self, replayed: &Replayed) -> PortBytes {
        let recorded =
            self.recorded_bytes.get_or_init(|| self.all_port_bytes(&Replayed::default()));
        let mut sums = *recorded;
        let mut of_port = FxHashMap::default();
        for (slot, [before, after]) in self.recording.changes(replayed) {
            let Some(side) = self.side(slot) else { continue };
            let mut bytes = |sharding| self.bytes_of_port(replayed, (slot, sharding), &mut of_port);
            let (before, after) = (bytes(before), bytes(after));
            let sum = sums[side].checked_sub(before).and_then(|sum| sum.checked_add(after));
            // What saturates cannot be taken off again.
            let Some(sum) = sum.filter(|_| sums[side] < u128::MAX) else {
                return self.all_port_bytes(replayed);
            };
            sums[side] = sum;
        }
        sums
    }
    fn all_port_bytes(&self, replayed: &Replayed) -> PortBytes {
        let (mut sums, mut of_port) = (PortBytes::default(), FxHashMap::default());
        for slot in self.ports() {
            let sharding = self.recording.sharding(replayed, self.source(replayed, slot));
            let bytes = self.bytes_of_port(replayed, (slot, sharding), &mut of_port);
            let sum = &mut sums[usize::from(matches!(slot, Slot::FuncResult(..)))];
            *sum = sum.saturating_add(bytes);
        }
        sums
    }
    /// The bytes of a port with this propagated sharding; `known` caches them by type and sharding.
    fn bytes_of_port(
        &self,
        replayed: &Replayed,
        (slot, sharding): (Slot, ShardingId),
        known: &mut FxHashMap<(TypeId, ShardingId), u128>,
    ) -> u128 {
        let ty = self.type_of(slot);
        *known.entry((ty, sharding)).or_insert_with(|| {
            let propagated = self.recording.by_id(replayed, &self.shardings, sharding);
            let sharding = propagated.map(|propagated| self.completed(propagated, ty));
            let totals = self.imported().value_totals(ty, sharding.as_ref());
            totals.map_or(0, |totals| totals.bytes_per_device)
        })
    }
    /// The index in [`PortBytes`] for `slot`; `None` if it is neither an argument nor a result of the main function.
    fn side(&self, slot: Slot) -> Option<usize> {
        let Slot::Value(value) = slot else { return Some(1) };
        let body = self.imported().func_body(self.main).get()?;
        matches!(self.imported().def(value), ValueDef::Arg(block) if block == body).then_some(0)
    }
    /// The arguments, then the results of the main function.
    fn ports(&self) -> impl Iterator<Item = Slot> + '_ {
        let (imported, main) = (self.imported(), self.main);
        let body = imported.func_body(main).get();
        let args = body.into_iter().flat_map(|body| imported.block_args(body)).map(Slot::Value);
        let results = 0..imported.func_results(main).len();
        args.chain(results.map(move |index| Slot::FuncResult(main, index)))
    }
    /// Whether `is_same` holds for the shardings of each argument and each result of the main function in the completed program and
    /// in that of `other`, which is about another form of the same program.
    pub fn have_same_ports(
        &self,
        replayed: &Replayed,
        (other, other_replayed): (&Self, &Replayed),
        is_same: impl Fn(Option<&TensorSharding>, Option<&TensorSharding>) -> bool,
    ) -> bool {
        type Port = (TypeId, ShardingId);
        let port = |prepared: &Self, replayed, slot| {
            let source = prepared.source(replayed, slot);
            (prepared.type_of(slot), prepared.recording.sharding(replayed, source))
        };
        let mut known: FxHashMap<(Port, Port), bool> = FxHashMap::default();
        let mut ports = self.ports();
        let mut others = other.ports();
        loop {
            let (mine, theirs) = match (ports.next(), others.next()) {
                (Some(mine), Some(theirs)) => (mine, theirs),
                (None, None) => return true,
                _ => return false,
            };
            let key = (port(self, replayed, mine), port(other, other_replayed, theirs));
            let are_same = *known.entry(key).or_insert_with(|| {
                let mine = self.completed_port(replayed, mine);
                is_same(mine.as_ref(), other.completed_port(other_replayed, theirs).as_ref())
            });
            if !are_same {
                return false;
            }
        }
    }
    /// The edits that annotate arguments and results as [`placements`] says; `None` if one of them may not be edited.
    pub fn placed(
        &self,
        ports: &[Option<TensorSharding>],
    ) -> Option<Vec<(Slot, Option<TensorSharding>)>> {
        let imported = self.imported();
        let edit = |(target, sharding): (Target, TensorSharding)| {
            let slot = self.slot(target);
            let given = slot.map_or_else(
                || annotation(imported, target),
                |slot| self.recording.sharding_at_start(slot),
            );
            if self.shardings.get(given) == Some(&sharding) {
                return Some(None);
            }
            let slot = slot.filter(|_| self.may_have(&sharding))?;
            Some(Some((slot, Some(sharding))))
        };
        let edits = placements(imported, self.main, ports).into_iter().map(edit);
        let edits = edits.collect::<Option<Vec<_>>>()?;
        Some(edits.into_iter().flatten().collect())
    }
}

/// The annotations that place arguments and results of `func` as `ports` says, closed, arguments first; a port without sharding is
/// replicated over the mesh of the first that has one. Values that are not ranked tensors get none.
pub fn placements(
    program: &Program,
    func: FuncId,
    ports: &[Option<TensorSharding>],
) -> Vec<(Target, TensorSharding)> {
    let first = ports.iter().flatten().map(|sharding| sharding.mesh).next();
    let Some(mesh) = first.or_else(|| program.meshes().ids().next()) else { return Vec::new() };
    let args = program.func_args(func).iter().enumerate();
    let args = args.map(|(index, port)| (Target::Argument(func, index), port.ty));
    let results = program.func_results(func).iter().enumerate();
    let results = results.map(|(index, port)| (Target::Result(func, index), port.ty));
    let place = |((target, ty), port): ((Target, TypeId), &Option<TensorSharding>)| {
        let rank = program.types()[ty].rank()?;
        let replicated = || TensorSharding::fully_replicated(mesh, rank, true);
        Some((target, port.as_ref().map_or_else(replicated, TensorSharding::closed)))
    };
    args.chain(results).zip(ports).filter_map(place).collect()
}
