//! Builds ops of `StableHLO` with local shapes.

use super::devices::Devices;
use super::digits::Digit;
use crate::index::{BlockId, OpId, TypeId, ValueId};
use crate::ir::{InsertPoint, NewOp, OpKind, Place, Program, Span, Type, ValueMap};
use rustc_hash::{FxHashMap, FxHashSet};

/// Builds ops at an insertion point.
pub struct Emitter<'p> {
    /// The program.
    pub program: &'p mut Program,
    /// Its devices.
    pub devices: Devices,
    /// The insertion point, and the op whose location new ops get.
    at: (Place, OpId),
    /// Whether new ops are inserted after that op.
    is_after: bool,
    block: BlockId,
    /// The device's position, by block and order of devices.
    positions: FxHashMap<(BlockId, u32), ValueId>,
    /// The numbers that digits of the position form, by block, order of devices and digits.
    numbers: FxHashMap<(BlockId, u32, Vec<Digit>), ValueId>,
    /// Scalar constants, by block, text and element type.
    constants: FxHashMap<(BlockId, String, TypeId), ValueId>,
    /// Offsets combined with constants, by block, op, offset and constant.
    combined: FxHashMap<(BlockId, &'static str, ValueId, i64), ValueId>,
    /// Numbers of lists, by block, list and index.
    listed: FxHashMap<(BlockId, Vec<i64>, ValueId), ValueId>,
    /// All values in these tables.
    shared: FxHashSet<ValueId>,
    /// The number of table insertions, and of look-ups that depend on a value that is not in a table.
    num_shared: usize,
    /// Maps values of copied ops to those of the copies; a field to reuse its memory.
    pub(super) map: ValueMap,
    /// The element type of positions and offsets: `i32`, but for programs with dims that need more.
    index: &'static str,
}

/// An insertion point.
#[derive(Clone, Copy)]
pub struct Mark {
    at: (Place, OpId),
    is_after: bool,
    block: BlockId,
}

/// Dims of this length may have offsets, padding included, that `i32` does not hold.
const LEAST_LONG: i64 = 1 << 30;

impl<'p> Emitter<'p> {
    /// An emitter for `program`.
    pub fn new(program: &'p mut Program, devices: Devices) -> Self {
        let is_long = program.types().longest_dim() >= LEAST_LONG;
        Self::with_index(program, devices, if is_long { "i64" } else { "i32" })
    }
    /// An emitter with empty tables. It takes the devices, which are to be given back.
    pub fn apart(&mut self) -> Emitter<'_> {
        Emitter::with_index(self.program, std::mem::take(&mut self.devices), self.index)
    }
    fn with_index(program: &'p mut Program, devices: Devices, index: &'static str) -> Self {
        let at = (Place::After(program.module_op()), program.module_op());
        Self {
            index,
            program,
            devices,
            at,
            is_after: false,
            block: BlockId::NONE,
            positions: FxHashMap::default(),
            numbers: FxHashMap::default(),
            constants: FxHashMap::default(),
            combined: FxHashMap::default(),
            listed: FxHashMap::default(),
            shared: FxHashSet::default(),
            num_shared: 0,
            map: ValueMap::default(),
        }
    }
    fn share(&mut self, value: ValueId) {
        self.shared.insert(value);
        self.num_shared += 1;
    }
    /// Whether `value` is in a table, and shared by the ops of a block.
    pub fn is_shared(&self, value: ValueId) -> bool {
        self.shared.contains(&value)
    }
    /// A counter that changes at each insertion into a table, and at each look-up that depends on a value outside of them.
    pub const fn num_shared(&self) -> usize {
        self.num_shared
    }
    /// Where new ops go.
    pub const fn place(&self) -> Place {
        self.at.0
    }
    /// The location of new ops.
    pub fn loc(&self) -> Span {
        self.program.loc(self.at.1)
    }
    /// Sets the insertion point right before `op`; new ops get its location.
    pub fn go_before(&mut self, op: OpId) {
        self.at = (Place::Before(op), op);
        self.is_after = false;
        self.block = self.program.parent_block(op);
    }
    /// Sets the insertion point after `op` and the ops inserted after it; new ops get its location.
    pub fn go_after(&mut self, op: OpId) {
        if self.is_after && self.at.1 == op {
            return;
        }
        self.is_after = true;
        self.at = (self.program.place_after(op), op);
        self.block = self.program.parent_block(op);
    }
    /// The insertion point, to go back to.
    pub const fn mark(&self) -> Mark {
        Mark { at: self.at, is_after: self.is_after, block: self.block }
    }
    /// Restores the insertion point that was saved as `mark`.
    pub fn go_back(&mut self, mark: Mark) {
        (self.at, self.is_after, self.block) = (mark.at, mark.is_after, mark.block);
    }
    /// The block of the insertion point.
    pub const fn block(&self) -> BlockId {
        self.block
    }
    /// Makes an op.
    pub fn op_with_results(
        &mut self,
        name: &str,
        operands: &[ValueId],
        types: &[TypeId],
        attrs: &[(&str, String)],
    ) -> OpId {
        let mut new = NewOp::new(name, operands, types);
        for (name, value) in attrs {
            new = new.attr(name, value.as_str());
        }
        let loc = self.loc();
        self.program.build(new, InsertPoint::at(self.at.0).with_loc(loc))
    }
    /// Records [`Emitter::cause`] as the cause of `op`.
    pub fn note_cause(&mut self, op: OpId) {
        self.program.set_cause(op, self.cause());
    }
    /// The op whose location new ops get; if it is one of the per-device program, or stands for a call, what required it.
    pub(super) fn cause(&self) -> OpId {
        let (program, own) = (&*self.program, self.at.1);
        let is_local = program.op_name(own).starts_with("stablehlo.");
        let hands_on = |op: &OpId| is_local || program.kind(*op) == OpKind::CustomCall;
        program.cause(own).filter(hands_on).unwrap_or(own)
    }
    /// Makes an op with one result.
    pub fn op(
        &mut self,
        name: &str,
        operands: &[ValueId],
        ty: TypeId,
        attrs: &[(&str, String)],
    ) -> ValueId {
        let op = self.op_with_results(name, operands, &[ty], attrs);
        self.program.result(op, 0)
    }
    /// The type of `value`.
    pub fn type_of(&self, value: ValueId) -> TypeId {
        self.program.type_of(value)
    }
    /// The shape of `value`, which is a tensor.
    pub fn shape(&self, value: ValueId) -> Vec<i64> {
        self.program.value_type(value).static_shape().unwrap_or_default()
    }
    /// The tensor type of `shape` with the elements of `like`.
    pub fn like(&mut self, shape: &[i64], like: TypeId) -> TypeId {
        self.program.tensor_type(shape, like)
    }
    /// The element type of `ty`, as text.
    pub fn element(&self, ty: TypeId) -> &str {
        match &self.program.types()[ty] {
            Type::RankedTensor { element, .. } => self.program.str(element.text),
            _ => "",
        }
    }
    /// A splat constant whose element has the text `element`; quantized elements, which constants do not have, are made of
    /// those that they stand for.
    pub fn splat(&mut self, element: &str, ty: TypeId) -> ValueId {
        if let Some(expressed) = expressed_type(self.element(ty)).map(str::to_owned) {
            let shape = self.program.types()[ty].static_shape().unwrap_or_default();
            let wide = self.program.tensor_type_of(&shape, &expressed);
            let point = if element.contains('.') { "" } else { ".0" };
            let value = self.splat(&format!("{element}{point}"), wide);
            return self.op("stablehlo.uniform_quantize", &[value], ty, &[]);
        }
        let value = format!("dense<{element}> : {}", self.program.type_text(ty));
        self.op("stablehlo.constant", &[], ty, &[("value", value)])
    }
    /// A scalar constant with the element type of `like`, made once for each block.
    pub fn scalar(&mut self, element: &str, like: TypeId) -> ValueId {
        let ty = self.like(&[], like);
        let key = (self.block, element.to_owned(), ty);
        if let Some(&known) = self.constants.get(&key) {
            return known;
        }
        let value = self.splat(element, ty);
        self.constants.insert(key, value);
        self.share(value);
        value
    }
    /// The type of offsets without dims.
    pub fn index_type(&mut self) -> TypeId {
        self.program.tensor_type_of(&[], self.index)
    }
    /// A constant offset.
    pub fn index(&mut self, value: i64) -> ValueId {
        let ty = self.index_type();
        self.scalar(&value.to_string(), ty)
    }
    /// An elementwise op of values of one type.
    pub fn elementwise(&mut self, name: &str, operands: &[ValueId]) -> ValueId {
        let ty = self.type_of(operands[0]);
        self.op(name, operands, ty, &[])
    }
    /// `value op constant` of offsets, made once for each block.
    fn with_constant(&mut self, name: &'static str, value: ValueId, constant: i64) -> ValueId {
        self.num_shared += usize::from(!self.is_shared(value));
        let key = (self.block, name, value, constant);
        if let Some(&known) = self.combined.get(&key) {
            return known;
        }
        let constant = self.index(constant);
        let combined = self.elementwise(name, &[value, constant]);
        self.combined.insert(key, combined);
        self.share(combined);
        combined
    }
    /// `value + constant`.
    pub fn add_constant(&mut self, value: ValueId, constant: i64) -> ValueId {
        if constant == 0 {
            return value;
        }
        self.with_constant("stablehlo.add", value, constant)
    }
    /// `value * constant`.
    pub fn times(&mut self, value: ValueId, constant: i64) -> ValueId {
        if constant == 1 {
            return value;
        }
        self.with_constant("stablehlo.multiply", value, constant)
    }
    /// The position of the device in the meshes of `order`.
    fn position(&mut self, order: u32) -> ValueId {
        if let Some(&known) = self.positions.get(&(self.block, order)) {
            return known;
        }
        let index = self.index_type();
        let ids = self.devices.mesh(order).map_or_else(Vec::new, |mesh| mesh.device_ids.clone());
        let position = if ids.is_empty() {
            let ty = self.program.tensor_type_of(&[], "ui32");
            let id = self.op(self.devices.id_op(), &[], ty, &[]);
            self.op("stablehlo.convert", &[id], index, &[])
        } else {
            let device = self.device();
            let mut positions = vec![0; ids.len()];
            for (position, &id) in ids.iter().enumerate() {
                if let Some(place) = usize::try_from(id).ok().and_then(|id| positions.get_mut(id)) {
                    *place = position as i64;
                }
            }
            self.lookup(&positions, device)
        };
        self.positions.insert((self.block, order), position);
        self.share(position);
        position
    }
    /// The element of `list` at `index`, looked up once for each block.
    pub fn lookup(&mut self, list: &[i64], index: ValueId) -> ValueId {
        self.num_shared += usize::from(!self.is_shared(index));
        let key = (self.block, list.to_vec(), index);
        if let Some(&known) = self.listed.get(&key) {
            return known;
        }
        let numbers: Vec<String> = list.iter().map(i64::to_string).collect();
        let ty = self.program.tensor_type_of(&[list.len() as i64], self.index);
        let value = format!("dense<[{}]> : {}", numbers.join(", "), self.program.type_text(ty));
        let table = self.op("stablehlo.constant", &[], ty, &[("value", value)]);
        let found = self.dynamic_slice(table, &[Some(index)], &[1]);
        let number = self.reshape(found, &[]);
        self.listed.insert(key, number);
        self.share(number);
        number
    }
    /// The id of the device.
    pub(super) fn device(&mut self) -> ValueId {
        let index = self.index_type();
        let ty = self.program.tensor_type_of(&[], "ui32");
        let id = self.op(self.devices.id_op(), &[], ty, &[]);
        self.op("stablehlo.convert", &[id], index, &[])
    }
    /// The number that `digits` of the device's position form, major to minor.
    pub fn number(&mut self, order: u32, digits: &[Digit]) -> ValueId {
        let key = (self.block, order, digits.to_vec());
        if let Some(&known) = self.numbers.get(&key) {
            return known;
        }
        let position = self.position(order);
        let count = self.devices.count();
        let mut number: Option<ValueId> = None;
        for &digit in digits {
            let mut value = position;
            if digit.stride != 1 {
                value = self.with_constant("stablehlo.divide", value, digit.stride);
            }
            if digit.end() < count {
                value = self.with_constant("stablehlo.remainder", value, digit.size);
            }
            number = Some(match number {
                None => value,
                Some(major) => {
                    let major = self.times(major, digit.size);
                    self.elementwise("stablehlo.add", &[major, value])
                }
            });
        }
        let number = match number {
            Some(number) => number,
            None => self.index(0),
        };
        self.numbers.insert(key, number);
        self.share(number);
        number
    }

    /// The indices along `dim` of a tensor of shape `shape`, plus `offset`.
    pub fn indices(&mut self, shape: &[i64], dim: usize, offset: Option<ValueId>) -> ValueId {
        let ty = self.program.tensor_type_of(shape, self.index);
        let attrs = [("iota_dimension", format!("{dim} : i64"))];
        let iota = self.op("stablehlo.iota", &[], ty, &attrs);
        match offset {
            Some(offset) => {
                let offset = self.broadcast(offset, &[], ty);
                self.elementwise("stablehlo.add", &[iota, offset])
            }
            None => iota,
        }
    }
    /// Compares two values of one type: `LT`, `GE` and so on.
    pub fn compare(&mut self, direction: &str, a: ValueId, b: ValueId) -> ValueId {
        let shape = self.shape(a);
        let ty = self.program.tensor_type_of(&shape, "i1");
        let direction = format!("#stablehlo<comparison_direction {direction}>");
        self.op("stablehlo.compare", &[a, b], ty, &[("comparison_direction", direction)])
    }
    /// Whether the elements of `value`, which are offsets, are below `limit`.
    pub fn are_below(&mut self, value: ValueId, limit: i64) -> ValueId {
        let ty = self.type_of(value);
        let limit = self.index(limit);
        let limit =
            if self.shape(value).is_empty() { limit } else { self.broadcast(limit, &[], ty) };
        self.compare("LT", value, limit)
    }
    /// `value` where `mask` is true, else `fill`, which has no dims.
    pub fn masked(&mut self, mask: ValueId, value: ValueId, fill: ValueId) -> ValueId {
        let ty = self.type_of(value);
        let fill = if self.shape(value).is_empty() { fill } else { self.broadcast(fill, &[], ty) };
        self.op("stablehlo.select", &[mask, value, fill], ty, &[])
    }
    /// `a` where `mask` is true, else `b`. The mask has their shape, or no dims.
    pub fn select(&mut self, mask: ValueId, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.type_of(a);
        self.op("stablehlo.select", &[mask, a, b], ty, &[])
    }
}

/// `array<i64: 1, 2>`
pub use crate::ir::int_array;

/// The type of the numbers that quantized elements stand for: `f32` of `!quant.uniform<i8:f32, 2.0>`.
fn expressed_type(element: &str) -> Option<&str> {
    let (_, after) = element.strip_prefix("!quant.uniform<")?.split_once(':')?;
    after.split([',', ':', '>']).next()
}

/// The text of zero in a tensor with elements of type `element`.
pub fn zero(element: &str) -> &'static str {
    number(element, ["false", "0", "0.000000e+00", "(0.000000e+00,0.000000e+00)"])
}

/// The text of one in a tensor with elements of type `element`.
pub fn one(element: &str) -> &'static str {
    number(element, ["true", "1", "1.000000e+00", "(1.000000e+00,0.000000e+00)"])
}

fn number(element: &str, [bool, int, float, complex]: [&'static str; 4]) -> &'static str {
    match element {
        "i1" => bool,
        text if text.starts_with("complex") => complex,
        text if text.starts_with(['f', 'b']) => float,
        _ => int,
    }
}
