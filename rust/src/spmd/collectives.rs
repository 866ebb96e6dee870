//! Builds `StableHLO`'s collectives.

use super::devices::replica_groups;
use super::digits::{total_size, Digit};
use super::emit::Emitter;
use super::placement::Placement;
use super::reducer::Reducer;
use crate::attribute::write_digit_groups;
use crate::index::{OpId, StrId, TypeId, ValueId};
use crate::ir::Program;
use rustc_hash::FxHashMap;

pub use crate::partition::channels::{last_channel, CHANNEL};

/// Builds collectives; each gets a new channel.
#[derive(Debug, Default)]
pub struct Collectives {
    /// The last channel in use, and its handle.
    channel: i64,
    handle: String,
    /// The name of [`CHANNEL`] in the program, once it has one.
    channel_name: Option<StrId>,
    /// Groups of devices as text, by order and digits.
    groups: FxHashMap<(u32, Vec<Digit>), String>,
    /// The source-target pairs of permutes as text, by the placement before, then the one after; `None` if all devices keep their
    /// shards.
    permutes: FxHashMap<Placement, FxHashMap<Placement, Option<String>>>,
}

impl Collectives {
    /// A builder whose channels start after `channel`.
    pub fn after(channel: i64) -> Self {
        Self { channel, ..Self::default() }
    }
    fn attrs(
        &mut self,
        emit: &Emitter<'_>,
        (order, digits): (u32, &[Digit]),
        own: Vec<(&'static str, String)>,
    ) -> Vec<(&'static str, String)> {
        let mut attrs = own;
        attrs.push((CHANNEL, self.channel().to_owned()));
        let groups = self.groups.entry((order, digits.to_vec())).or_insert_with(|| {
            if emit.devices.are_unlisted() {
                return digits_text(digits);
            }
            let groups = emit.devices.mesh(order).map(|mesh| replica_groups(digits, mesh));
            matrix_text(&groups.unwrap_or_default())
        });
        attrs.push(("replica_groups", groups.clone()));
        attrs
    }
    /// Builds a collective, and records the op that required it as its cause.
    fn build(
        emit: &mut Emitter<'_>,
        name: &str,
        input: ValueId,
        ty: TypeId,
        attrs: &[(&str, String)],
    ) -> OpId {
        let op = emit.op_with_results(name, &[input], &[ty], attrs);
        emit.note_cause(op);
        op
    }
    /// The handle of a new channel.
    pub(super) fn channel(&mut self) -> &str {
        self.channel += 1;
        self.handle.clear();
        self.handle.push_str("#stablehlo.channel_handle<handle = ");
        write_int(self.channel, &mut self.handle);
        self.handle.push_str(", type = 1>");
        &self.handle
    }

    /// The name of the attribute with the channel of a collective; `None` if `program` has no such string.
    pub(super) fn channel_name(&mut self, program: &Program) -> Option<StrId> {
        self.channel_name = self.channel_name.or_else(|| program.find_name(CHANNEL));
        self.channel_name
    }

    /// An all-gather along `dim` among devices that differ in `digits`; shards are in the order of the
    /// number that the digits form.
    pub fn all_gather(
        &mut self,
        emit: &mut Emitter<'_>,
        input: ValueId,
        dim: usize,
        (order, digits): (u32, &[Digit]),
    ) -> ValueId {
        let mut shape = emit.shape(input);
        shape[dim] *= total_size(digits);
        let ty = emit.type_of(input);
        let ty = emit.like(&shape, ty);
        let own = vec![("all_gather_dim", int(dim)), ("use_global_device_ids", String::new())];
        let attrs = self.attrs(emit, (order, digits), own);
        let op = Self::build(emit, "stablehlo.all_gather", input, ty, &attrs);
        emit.program.result(op, 0)
    }
    /// An all-to-all among devices that differ in `digits`, which splits dim `split` and concatenates dim `concat`.
    pub fn all_to_all(
        &mut self,
        emit: &mut Emitter<'_>,
        input: ValueId,
        (split, concat): (usize, usize),
        (order, digits): (u32, &[Digit]),
    ) -> ValueId {
        let count = total_size(digits);
        let mut shape = emit.shape(input);
        shape[split] /= count;
        shape[concat] *= count;
        let ty = emit.type_of(input);
        let ty = emit.like(&shape, ty);
        let own = vec![
            ("split_dimension", int(split)),
            ("concat_dimension", int(concat)),
            ("split_count", format!("{count} : i64")),
        ];
        let attrs = self.attrs(emit, (order, digits), own);
        let op = Self::build(emit, "stablehlo.all_to_all", input, ty, &attrs);
        emit.program.result(op, 0)
    }
    /// A collective permute of the shards of placement `from` to those of `to`, by the source-target `pairs`; `input` if all
    /// devices keep their shards.
    pub fn permute_between(
        &mut self,
        emit: &mut Emitter<'_>,
        input: ValueId,
        (from, to): (&Placement, &Placement),
        pairs: impl FnOnce(&Emitter<'_>) -> Vec<(i64, i64)>,
    ) -> ValueId {
        let known = self.permutes.get(from).and_then(|after| after.get(to)).cloned();
        let text = known.unwrap_or_else(|| {
            let pairs = pairs(emit);
            let text = pairs.iter().any(|(from, to)| from != to).then(|| pairs_text(&pairs));
            self.permutes.entry(from.clone()).or_default().insert(to.clone(), text.clone());
            text
        });
        match text {
            Some(text) => self.permute_by(emit, input, text),
            None => input,
        }
    }
    /// A collective permute, by (source, target) pairs of device ids. Devices that are no target get zeros.
    pub fn permute(
        &mut self,
        emit: &mut Emitter<'_>,
        input: ValueId,
        pairs: &[(i64, i64)],
    ) -> ValueId {
        self.permute_by(emit, input, pairs_text(pairs))
    }
    /// A collective permute among devices that differ in `digits`, too many to be listed.
    pub fn permute_along(
        &mut self,
        emit: &mut Emitter<'_>,
        input: ValueId,
        digits: &[Digit],
    ) -> ValueId {
        self.permute_by(emit, input, digits_text(digits))
    }
    /// Permutes between replicas have no channel.
    fn permute_by(&mut self, emit: &mut Emitter<'_>, input: ValueId, pairs: String) -> ValueId {
        let mut attrs = vec![("source_target_pairs", pairs)];
        if !emit.devices.has_replicas() {
            attrs.insert(0, (CHANNEL, self.channel().to_owned()));
        }
        let ty = emit.type_of(input);
        let op = Self::build(emit, "stablehlo.collective_permute", input, ty, &attrs);
        emit.program.result(op, 0)
    }
    /// An all-reduce among devices that differ in `digits`; decomposed if XLA does not support the reducer.
    pub fn all_reduce(
        &mut self,
        emit: &mut Emitter<'_>,
        input: ValueId,
        reducer: Reducer,
        (order, digits): (u32, &[Digit]),
    ) -> ValueId {
        if !reducer.is_of_collectives(emit.element(emit.type_of(input))) {
            return self.decomposed_all_reduce(emit, input, reducer, (order, digits));
        }
        let own = vec![("use_global_device_ids", String::new())];
        let attrs = self.attrs(emit, (order, digits), own);
        let ty = emit.type_of(input);
        let op = Self::build(emit, "stablehlo.all_reduce", input, ty, &attrs);
        reducer.add_body(emit, op, ty);
        emit.program.result(op, 0)
    }
    /// A reduce-scatter along `dim` among devices that differ in `digits`; decomposed if XLA does not support the reducer.
    pub fn reduce_scatter(
        &mut self,
        emit: &mut Emitter<'_>,
        input: ValueId,
        (dim, reducer): (usize, Reducer),
        (order, digits): (u32, &[Digit]),
    ) -> ValueId {
        if !reducer.is_of_collectives(emit.element(emit.type_of(input))) {
            return self.decomposed_reduce_scatter(emit, input, (dim, reducer), (order, digits));
        }
        let mut shape = emit.shape(input);
        shape[dim] /= total_size(digits);
        let own = vec![("scatter_dimension", int(dim)), ("use_global_device_ids", String::new())];
        let attrs = self.attrs(emit, (order, digits), own);
        let like = emit.type_of(input);
        let ty = emit.like(&shape, like);
        let op = Self::build(emit, "stablehlo.reduce_scatter", input, ty, &attrs);
        reducer.add_body(emit, op, like);
        emit.program.result(op, 0)
    }
}

/// The attribute for groups of devices that differ in `digits` and are too many to be listed.
fn digits_text(digits: &[Digit]) -> String {
    let digits = digits.iter().map(|digit| (digit.stride, digit.size));
    format!("\"{}\"", write_digit_groups(digits))
}

/// The attribute for (source, target) pairs of device ids.
fn pairs_text(pairs: &[(i64, i64)]) -> String {
    let rows: Vec<Vec<i64>> = pairs.iter().map(|&(from, to)| vec![from, to]).collect();
    matrix_text(&rows)
}

fn int(value: usize) -> String {
    format!("{value} : i64")
}

/// `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`
pub(super) fn matrix_text(rows: &[Vec<i64>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    if rows.is_empty() {
        return format!("dense<> : tensor<0x{columns}xi64>");
    }
    let mut text = String::from("dense<[");
    for (row, before) in rows.iter().zip(std::iter::once("[").chain(std::iter::repeat(", ["))) {
        text.push_str(before);
        for (number, before) in row.iter().zip(std::iter::once("").chain(std::iter::repeat(", "))) {
            text.push_str(before);
            write_int(*number, &mut text);
        }
        text.push(']');
    }
    text + &format!("]> : tensor<{}x{columns}xi64>", rows.len())
}

/// Appends `number` to `text`: without the formatter, since there is one for each device.
fn write_int(number: i64, text: &mut String) {
    if number < 0 {
        text.push('-');
    }
    let mut digits = [0_u8; 20];
    let (mut at, mut rest) = (digits.len(), number.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.extend(digits[at..].iter().map(|&digit| char::from(digit)));
}
