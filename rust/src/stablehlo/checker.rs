//! Checks the ops of a program against their definitions.

use super::attributes::Attributes;
use super::constraint::admits;
use super::definition::Definition;
use super::families::definition_of;
use super::last_ops::{LastOp, LastTypes, Recent};
use super::read_types::{Outline, TypeCache};
use super::types::ValueType;
use super::verified::Verified;
use super::view::{OpView, RegionView, TypeList};
use crate::index::{Id, OpId, RegionId, SignatureId, StrId, TypeId};
use crate::inline_list::InlineList;
use crate::ir::{OpTraits, Program};
use crate::mlir::AttrValue;

/// Cached results for the ops of one name.
struct Named<'p> {
    name: &'p str,
    definition: Option<&'static Definition>,
    /// The type of the last plain op; see [`Definition::is_plain`].
    plain_type: TypeId,
    recent: Recent<'p>,
}

/// Checks the ops of a program, and caches the results by signature.
pub struct Checker<'p> {
    program: &'p Program,
    /// The text that the program was read from.
    source: &'p [u8],
    types: TypeCache<'p>,
    /// For each string, one more than the index in `named` for ops with this name; 0 if there is no
    /// entry yet.
    places: Vec<u32>,
    named: Vec<Named<'p>>,
    /// The name of constants, and for each type whether plain constants of this name may have it,
    /// if known.
    constants: (StrId, Vec<bool>),
    /// For each signature, whether an op with it was found valid.
    is_right: Vec<bool>,
    /// The signatures that are valid according to earlier programs.
    verified: Verified,
}

/// The types of the operands and the results of an op.
#[derive(Clone, Copy)]
struct Types<'t> {
    operands: &'t [TypeId],
    results: &'t [TypeId],
}

impl<'p> Checker<'p> {
    /// A checker for the ops of `program`.
    pub fn new(program: &'p Program) -> Self {
        Self {
            program,
            source: program.text().source().as_bytes(),
            types: TypeCache::new(program),
            places: vec![0; program.strings().len()],
            named: Vec::with_capacity(USUAL_NAMES),
            constants: (StrId::NONE, vec![false; program.types().len()]),
            is_right: vec![false; program.signatures().len()],
            verified: Verified::take(program.shardy()),
        }
    }
    /// A checker for the ops of `program`, which no pass has changed. All checks that depend only
    /// on the signature are done already.
    pub fn of_parsed(program: &'p Program) -> Self {
        let mut checker = Self::new(program);
        for id in program.signatures().ids() {
            checker.signature(id);
        }
        checker
    }
    /// Checks the first op with this signature, if the signature determines whether it is valid.
    fn signature(&mut self, id: SignatureId) {
        let program = self.program;
        let signature = &program.signatures()[id];
        let place = self.place(signature.name);
        let Some(definition) = self.named[place].definition else { return };
        let op = signature.example;
        if is_judged_by_signature(program, op, definition) {
            let (operands, results) = (&signature.operand_types, &signature.result_types);
            // Errors are reported for each op with this signature later.
            let _ = self.judge(op, id, place, definition, Types { operands, results });
        }
    }
    /// Whether an op with the signature of `op` was found valid; then the ops inside it are valid
    /// too.
    #[inline]
    pub fn is_known(&self, op: OpId) -> bool {
        let program = self.program;
        let signature = program.signature(op);
        // The index of `NONE` is out of range.
        let is_right = self.is_right.get(signature.index()) == Some(&true);
        is_right && (program.num_regions(op) == 0 || !has_written_region(program, op))
    }
    /// The first op from `next` on that has regions, or that is neither known to be valid nor a
    /// plain constant.
    pub fn past_settled(&mut self, mut next: usize) -> usize {
        let program = self.program;
        while next < program.num_op_ids() {
            let op = OpId::from_index(next);
            let is_known = self.is_right.get(program.signature(op).index()) == Some(&true);
            if program.num_regions(op) != 0 || !(is_known || self.is_plain_constant(op)) {
                break;
            }
            next += 1;
        }
        next
    }
    /// Whether `op` has a definition. If it does not conform to it, the error has MLIR's messages,
    /// usually one, at most two.
    pub fn check(&mut self, op: OpId) -> Result<bool, Vec<String>> {
        let program = self.program;
        let place = self.place(program.op_name_id(op));
        let Some(definition) = self.named[place].definition else { return Ok(false) };
        let mut types: InlineList<TypeId, NUM_INLINE> = InlineList::new();
        for value in program.operands(op) {
            types.push(program.type_of(value));
        }
        for value in program.op_results(op) {
            types.push(program.type_of(value));
        }
        let (operands, results) = types.split_at(program.num_operands(op));
        let types = Types { operands, results };
        let signature = program.signature(op);
        if signature.is_some() && is_judged_by_signature(program, op, definition) {
            return self.judge(op, signature, place, definition, types).map(|()| true);
        }
        self.check_by(op, place, definition, types).map(|()| true)
    }
    /// Whether `op` is a constant in custom syntax without attributes, of a type that constants may
    /// have.
    #[inline]
    pub fn is_plain_constant(&mut self, op: OpId) -> bool {
        let program = self.program;
        if !program.has_traits(op, OpTraits::CONSTANT_LIKE)
            || program.num_operands(op) != 0
            || program.num_results(op) != 1
            || program.num_regions(op) != 0
            || !program.op_attrs(op).is_empty()
        {
            return false;
        }
        let (name, ty) = (program.op_name_id(op), program.type_of(program.result(op, 0)));
        let is_known = self.constants.0 == name && self.constants.1.get(ty.index()) == Some(&true);
        (is_known || self.may_be_constant(name, ty)) && self.has_written_value(op)
    }
    /// Whether plain constants called `name` may have the type `ty`.
    #[inline(never)]
    fn may_be_constant(&mut self, name: StrId, ty: TypeId) -> bool {
        let place = self.place(name);
        let Some(definition) = self.named[place].definition else { return false };
        if definition.is_plain != Some(0) || !self.admits(place, definition, ty) {
            return false;
        }
        if self.constants.0 != name {
            self.constants.0 = name;
            self.constants.1.fill(false);
        }
        if let Some(is_known) = self.constants.1.get_mut(ty.index()) {
            *is_known = true;
        }
        true
    }
    /// Whether `op`, a constant, is in custom syntax.
    #[inline]
    fn has_written_value(&self, op: OpId) -> bool {
        // Usually one space and then the value.
        let end = self.program.printing().op(op).dict.end as usize;
        let next = self.source.get(end..).unwrap_or_default();
        match *next {
            [b' ', byte, ..] if end != 0 && !byte.is_ascii_whitespace() => byte != b':',
            _ => self.program.has_written_value(op),
        }
    }
    /// Checks `op`, whose signature determines whether it is valid, unless an op of an earlier
    /// program was valid.
    fn judge(
        &mut self,
        op: OpId,
        signature: SignatureId,
        place: usize,
        definition: &Definition,
        types: Types<'_>,
    ) -> Result<(), Vec<String>> {
        if !self.verified.has(self.program.signatures(), signature) {
            self.check_by(op, place, definition, types)?;
            self.verified.note(signature);
        }
        if self.is_right.len() <= signature.index() {
            self.is_right.resize(self.program.signatures().len(), false);
        }
        self.is_right[signature.index()] = true;
        Ok(())
    }
    /// Keeps the results for later programs.
    pub fn finish(self) {
        self.verified.leave(self.program.signatures(), self.program.has_aliases());
    }
    /// The index of the cached results for ops called `name`.
    #[inline]
    fn place(&mut self, name: StrId) -> usize {
        match self.places.get(name.index()) {
            Some(&place) if place != 0 => place as usize - 1,
            _ => self.new_place(name),
        }
    }
    fn new_place(&mut self, id: StrId) -> usize {
        let name = self.program.str(id);
        let definition = definition_of(name, self.program.shardy());
        let (plain_type, recent) = (TypeId::NONE, Recent::default());
        self.named.push(Named { name, definition, plain_type, recent });
        if self.places.len() <= id.index() {
            self.places.resize(id.index() + 1, 0);
        }
        self.places[id.index()] = self.named.len() as u32;
        self.named.len() - 1
    }
    /// Whether all values of `op` have one type, a valid tensor type, and the definition has no
    /// other condition, as for most elementwise ops.
    fn is_plain(
        &mut self,
        op: OpId,
        place: usize,
        definition: &Definition,
        types: Types<'_>,
    ) -> bool {
        let program = self.program;
        let &[ty] = types.results else { return false };
        if definition.is_plain != Some(types.operands.len())
            || types.operands.iter().any(|other| *other != ty)
            || program.num_regions(op) != 0
            || program.op_attrs(op).iter().any(|attr| is_inherent(program, attr.name))
        {
            return false;
        }
        // The elements of a constant are an attribute if they are not in custom syntax.
        let is_constant = !definition.attributes.is_empty() && definition.operands.is_empty();
        if is_constant && !program.has_written_value(op) {
            return false;
        }
        self.admits(place, definition, ty)
    }
    /// Whether the definition of a plain op, whose name is at `place`, admits values of type `ty`.
    #[inline]
    fn admits(&mut self, place: usize, definition: &Definition, ty: TypeId) -> bool {
        let known = &mut self.named[place].plain_type;
        if *known == ty {
            return true;
        }
        let read = &self.types.get(ty).ty;
        for groups in [definition.results, definition.operands] {
            if groups.first().is_some_and(|group| !admits(group.takes, read)) {
                return false;
            }
        }
        *known = ty;
        true
    }
    fn check_by(
        &mut self,
        op: OpId,
        place: usize,
        definition: &Definition,
        types: Types<'_>,
    ) -> Result<(), Vec<String>> {
        if self.is_plain(op, place, definition, types) {
            return Ok(());
        }
        let Self { program, types: cache, named, .. } = self;
        let program = *program;
        let Named { name, recent, .. } = &mut named[place];
        let mut only;
        let (last, last_types) = if let Some(known) = recent.of(program, op, definition) {
            known
        } else {
            only = (LastOp::new(Attributes::of(program, op)), LastTypes::default());
            (&mut only.0, &mut only.1)
        };
        let num_operands = types.operands.len();
        let counts = [num_operands, program.num_regions(op)];
        let num_values = num_operands + types.results.len();
        let (mut few, mut many);
        let (all, outlines): (&mut [&ValueType], &mut [Outline]) = if num_values <= NUM_INLINE {
            few = ([&ValueType::Token; NUM_INLINE], [Outline::default(); NUM_INLINE]);
            (&mut few.0[..num_values], &mut few.1[..num_values])
        } else {
            many = (vec![&ValueType::Token; num_values], vec![Outline::default(); num_values]);
            (&mut many.0, &mut many.1)
        };
        let mut at = 0;
        for side in [types.operands, types.results] {
            for &ty in side {
                let read = cache.get(ty);
                (all[at], outlines[at]) = (&read.ty, read.outline);
                at += 1;
            }
        }
        let differs_in_sizes = last_types.are(counts, outlines);
        let (operands, results) = all.split_at(num_operands);
        let mut regions = Vec::new();
        if counts[1] != 0 {
            regions.extend(program.op_regions(op).map(|id| region(program, cache, id)));
        }
        let constants = |index: usize| constant_ints(program, op, index);
        let view = OpView {
            name,
            operands,
            results,
            attributes: &last.attributes,
            regions,
            constants: &constants,
            has_known_attributes: last.is_valid,
            differs_in_sizes,
        };
        definition.check(&view)?;
        last.is_valid = true;
        if !differs_in_sizes {
            *last_types = LastTypes::new(counts, outlines);
        }
        Ok(())
    }
}

/// Most programs have at most this many op names.
const USUAL_NAMES: usize = 32;

/// Ops with at most this many operands and results are checked without allocating lists of types.
const NUM_INLINE: usize = 8;

fn region<'a>(program: &'a Program, types: &'a TypeCache<'_>, region: RegionId) -> RegionView<'a> {
    let Some(block) = program.region_entry(region).get() else { return RegionView::default() };
    let ends = program.first_op(block).get().zip(program.last_op(block).get());
    let type_of = |value| &types.of(value).ty;
    RegionView {
        num_blocks: program.region_blocks(region).count(),
        args: program.block_args(block).map(type_of).collect(),
        ends: ends.map(|(first, last)| [program.op_name(first), program.op_name(last)]),
        // The checks do not distinguish counts above three.
        num_ops: program.block_ops(block).take(3).count(),
        returned: ends
            .map_or_else(TypeList::new, |(_, last)| program.operands(last).map(type_of).collect()),
    }
}

/// Whether an attribute of this name may be part of an op's definition.
fn is_inherent(program: &Program, name: StrId) -> bool {
    !program.str(name).contains('.')
}

/// Whether the signature of `op` determines whether it is valid. It does not if `op` has a region
/// in its text, or if its definition has no attributes and it might have properties, since
/// signatures contain neither.
fn is_judged_by_signature(program: &Program, op: OpId, definition: &Definition) -> bool {
    !definition.looks_around
        && !has_written_region(program, op)
        && (!definition.attributes.is_empty()
            || !program.op_attrs(op).iter().any(|attr| is_inherent(program, attr.name)))
}

/// Whether `op` has a region that its signature does not imply.
fn has_written_region(program: &Program, op: OpId) -> bool {
    program.num_regions(op) != 0
        && program.op_regions(op).any(|region| !program.printing().region_span(region).is_empty())
}

/// The integers of an operand of `op` that is a constant.
pub fn constant_ints(program: &Program, op: OpId, operand: usize) -> Option<Vec<i64>> {
    let value = program.operands(op).nth(operand)?;
    let constant = program.defining_op(value)?;
    if !OpTraits::of_name(program.op_name(constant)).has(OpTraits::CONSTANT_LIKE) {
        return None;
    }
    let shape = program.value_type(value).static_shape()?;
    let count = shape.iter().try_fold(1_usize, |n, &size| n.checked_mul(size.try_into().ok()?))?;
    let text = program.resolved_alias(program.constant_text(constant).trim());
    let value = AttrValue::parse(text);
    let AttrValue::Dense { .. } = value else { return None };
    let ints = value.as_ints()?;
    match ints[..] {
        [splat] if count <= MAX_CONSTANT => Some(vec![splat; count]),
        _ if ints.len() == count => Some(ints),
        _ => None,
    }
}

/// Constants with more elements than this are not read as shapes.
const MAX_CONSTANT: usize = 1 << 16;
