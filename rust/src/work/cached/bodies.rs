//! The work of ops that depends on the ops in their regions.

use super::{Outcome, Works};
use crate::index::{Id, OpId};
use crate::rules::SignatureView;
use crate::work::ops::Work;

impl Works<'_> {
    /// The work of `op`, which `measure` finds from that of its regions.
    pub(super) fn of_bodies(
        &mut self,
        op: OpId,
        measure: fn(&SignatureView<'_>, &[Work]) -> Option<Work>,
    ) -> Outcome {
        if let Some(known) = self.known_bodies.get(&op) {
            return *known;
        }
        let like = self.program.signature(op).get().map(|id| self.last_with_body[id]);
        let like = like.and_then(|like| Some((like.get()?, *self.known_bodies.get(&like)?)));
        let like = like.filter(|&(like, _)| self.have_equal_bodies(op, like));
        let outcome = if let Some((_, outcome)) = like {
            outcome
        } else {
            let work = self.measured_by(op, measure);
            work.map_or_else(|| Outcome::Unknown(self.reason(op)), Outcome::Counted)
        };
        if let Some(id) = self.program.signature(op).get() {
            self.last_with_body[id] = op;
        }
        self.known_bodies.insert(op, outcome);
        outcome
    }
    /// The work of one run of each region of `op`, on scalars.
    fn bodies(&mut self, op: OpId) -> Vec<Work> {
        let program = self.program;
        let mut bodies = Vec::with_capacity(program.num_regions(op));
        for region in program.op_regions(op) {
            let mut total = Work::default();
            for block in program.region_blocks(region) {
                for inner in program.block_ops(block) {
                    if let Outcome::Counted(work) | Outcome::Collective(work) = self.of(inner) {
                        total = total.plus(work);
                    }
                }
            }
            bodies.push(total);
        }
        bodies
    }
    /// Whether two ops of one signature have the types of it, and equal ops on equal types in their regions.
    fn have_equal_bodies(&self, op: OpId, other: OpId) -> bool {
        let program = self.program;
        let is_as_signed = |op: OpId| self.as_signed[op.index()];
        let types = |op: OpId| {
            let values = program.operands(op).chain(program.op_results(op));
            values.map(|value| program.type_of(value))
        };
        let are_equal = |one: OpId, two: OpId| {
            program.num_regions(one) == 0
                && program.num_regions(two) == 0
                && program.op_name_id(one) == program.op_name_id(two)
                && program.signature(one) == program.signature(two)
                && (is_as_signed(one) && is_as_signed(two) || types(one).eq(types(two)))
        };
        let ops = |region| program.region_blocks(region).flat_map(|block| program.block_ops(block));
        let are_equal_regions = |(one, two)| {
            let (mut ones, mut twos) = (ops(one), ops(two));
            loop {
                match (ones.next(), twos.next()) {
                    (None, None) => return true,
                    (Some(one), Some(two)) if are_equal(one, two) => {}
                    _ => return false,
                }
            }
        };
        is_as_signed(op)
            && is_as_signed(other)
            && program.num_regions(op) == program.num_regions(other)
            && program.op_regions(op).zip(program.op_regions(other)).all(are_equal_regions)
    }
    /// The result of `measure` for `op` with local shapes and the work of its regions; `None` where shapes are not known.
    fn measured_by(
        &mut self,
        op: OpId,
        measure: fn(&SignatureView<'_>, &[Work]) -> Option<Work>,
    ) -> Option<Work> {
        let mut key = self.by_bodies.key();
        self.describe(op, &mut key)?;
        if !self.describe_inside(op, &mut key) {
            let bodies = self.bodies(op);
            return self.with_view(op, |view| measure(view, &bodies));
        }
        self.by_bodies.find(key).unwrap_or_else(|key| {
            let bodies = self.bodies(op);
            let work = self.with_view(op, |view| measure(view, &bodies));
            self.by_bodies.add(key, work)
        })
    }
    /// Writes all that the work of the ops inside `op` depends on into `key`; false if some of them have regions, too.
    fn describe_inside(&mut self, op: OpId, key: &mut Vec<u32>) -> bool {
        let program = self.program;
        for region in program.op_regions(op) {
            for inner in program.region_blocks(region).flat_map(|block| program.block_ops(block)) {
                let values = program.operands(inner).chain(program.op_results(inner));
                let (name, signature) = (program.op_name_id(inner), program.signature(inner));
                let start = key.len();
                key.extend([name.index() as u32, signature.index() as u32, 0]);
                key.extend(values.map(|value| self.tensors.id(value)));
                key[start + 2] = (key.len() - start) as u32;
                if program.num_regions(inner) > 0 {
                    return false;
                }
            }
            key.push(u32::MAX);
        }
        true
    }
}
