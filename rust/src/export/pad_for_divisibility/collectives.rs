//! Pads Shardy's collectives: inputs are padded before they are sharded, and results are sliced
//! after they are gathered.

use super::conversion::{Conversion, Padding};
use super::shapes::padded_type;
use crate::index::{OpId, ShardingId, ValueId};
use crate::ir::{InsertPoint, Payload, Place, Program};
use crate::shardy::Change;

impl Conversion {
    /// Pads the input of `op` to a multiple of the number of shards in `sharding`, the sharding of
    /// its result, which gets the padded shape.
    pub(super) fn pad_collective(&mut self, program: &mut Program, op: OpId, sharding: ShardingId) {
        let source = program.operand(op, 0);
        let mut input = self.adapted(program, source);
        let ty = program.type_of(input);
        let padded = padded_type(program, ty, sharding);
        let mut padding = (padded != ty).then_some(Padding::Zeros);
        if program.shardy().has(Change::PaddedCollectives) {
            let was_padded = ty != self.original_type(program, source);
            padding = self.padding_of(input).or(padding.filter(|_| !was_padded));
        }
        if padded != ty {
            let at = program.before(op).with_loc(program.value_loc(input));
            let scalar = match padding {
                Some(Padding::Ones) => program.build_one(ty, at),
                Some(Padding::Zeros) | None => program.build_zero(ty, at),
            };
            let shape = program.types()[padded].static_shape().unwrap_or_default();
            let input_sharding = program.sharding_of(input);
            input = program.build_pad(input, scalar, &shape, input_sharding, at);
            self.set_padding(input, padding);
        }
        self.set_padded(program, op, &[input], &[padded]);
        self.set_padding(program.result(op, 0), padding);
    }
    pub(super) fn pad_all_gather(&mut self, program: &mut Program, op: OpId) -> bool {
        let input = self.adapted(program, program.operand(op, 0));
        if !self.pad_op(program, op, &[input]) {
            return false;
        }
        let result = program.result(op, 0);
        let padding = self.padding_of(input);
        self.set_padding(result, padding);
        let Some(Payload::AxesPerDim(axes, _)) = program.payload(op) else { return true };
        let is_gathered: Vec<bool> = axes.iter().map(|axes| !axes.is_empty()).collect();
        self.trim(program, op, padding, |dim| is_gathered.get(dim) == Some(&true));
        true
    }
    pub(super) fn pad_all_to_all(&mut self, program: &mut Program, op: OpId) -> bool {
        let input = self.adapted(program, program.operand(op, 0));
        let padding = self.padding_of(input);
        let sharding = program.sharding(program.result(op, 0));
        self.pad_collective(program, op, sharding);
        let Some(Payload::AllToAll(params)) = program.payload(op) else { return true };
        let sources: Vec<usize> = params.iter().map(|(_, source, _)| *source as usize).collect();
        self.trim(program, op, padding, |dim| sources.contains(&dim));
        true
    }
    /// Slices the result of `op` along these dims to its size before padding.
    fn trim(
        &mut self,
        program: &mut Program,
        op: OpId,
        padding: Option<Padding>,
        is_trimmed: impl Fn(usize) -> bool,
    ) {
        let result = program.result(op, 0);
        let old = program.types()[self.original_type(program, result)].static_shape();
        self.trim_to(program, op, &old.unwrap_or_default(), padding, is_trimmed);
    }
    /// Slices the result of `op` along these dims to the sizes in `shape`, if they are smaller.
    pub(super) fn trim_to(
        &mut self,
        program: &mut Program,
        op: OpId,
        shape: &[i64],
        padding: Option<Padding>,
        is_trimmed: impl Fn(usize) -> bool,
    ) {
        let result = program.result(op, 0);
        let Some(mut limits) = program.value_type(result).static_shape() else { return };
        let padded = limits.clone();
        for (dim, (limit, &size)) in limits.iter_mut().zip(shape).enumerate() {
            if is_trimmed(dim) && *limit > size {
                *limit = size;
            }
        }
        if limits == padded {
            return;
        }
        // The size of the slice is rounded up to a multiple of its number of shards.
        let sharding = program.sharding(result);
        let cut = program.tensor_type(&limits, program.type_of(result));
        let even = padded_type(program, cut, sharding);
        let is_even = even == cut;
        let limits = program.types()[even].static_shape().unwrap_or(limits);
        let starts = vec![0; limits.len()];
        let at = InsertPoint { place: Place::After(op), loc: program.loc(op) };
        let slice: ValueId = program.build_slice(result, &starts, &limits, sharding, at);
        self.set_padding(slice, padding.filter(|_| is_even));
        self.replaced.insert(result, slice);
    }
}
