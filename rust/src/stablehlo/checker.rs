//! Checks the ops of a program against their definitions.

use super::attributes::Attributes;
use super::definition::Definition;
use super::families::definition_of;
use super::last_ops::{LastOp, LastOps};
use super::read_types::TypeCache;
use super::types::ValueType;
use super::verified::Verified;
use super::view::{OpView, RegionView};
use crate::index::{Id, OpId, RegionId, SignatureId, StrId, TypeId};
use crate::ir::{OpTraits, Program};
use crate::mlir::AttrValue;

/// The cached definition of an op name, and the name.
#[derive(Clone, Copy)]
enum Lookup<'p> {
    NotYet,
    Found(&'p str, Option<&'static Definition>),
}

/// Checks ops of a program, and caches the results by signature.
pub struct Checker<'p> {
    program: &'p Program,
    types: TypeCache<'p>,
    /// The definitions of op names, filled in when first needed.
    definitions: Vec<Lookup<'p>>,
    /// For each op name, the type of the last plain op of that name; see [`Definition::is_plain`].
    plain_types: Vec<TypeId>,
    /// For each signature, whether an op with it was found valid.
    is_right: Vec<bool>,
    /// What earlier programs tell of signatures.
    verified: Verified,
    last_ops: LastOps<'p>,
}

impl<'p> Checker<'p> {
    /// A checker for the ops of `program`.
    pub fn new(program: &'p Program) -> Self {
        Self {
            program,
            types: TypeCache::new(program),
            definitions: Vec::new(),
            plain_types: Vec::new(),
            is_right: Vec::new(),
            verified: Verified::take(),
            last_ops: LastOps::default(),
        }
    }
    /// Whether an op with the signature of `op` was found valid; the ops inside it are valid then too.
    #[inline]
    pub fn is_known(&self, op: OpId) -> bool {
        let program = self.program;
        let signature = program.signature(op);
        // The index of `NONE` is out of range.
        let is_right = self.is_right.get(signature.index()) == Some(&true);
        is_right && (program.num_regions(op) == 0 || !has_written_region(program, op))
    }
    /// Whether `op` has a definition; if it does not match it, MLIR's messages, mostly one, at most two.
    pub fn check(&mut self, op: OpId) -> Result<bool, Vec<String>> {
        let program = self.program;
        let (name, definition) = self.definition(program.op_name_id(op));
        let Some(definition) = definition else { return Ok(false) };
        let signature = program.signature(op);
        let is_judged = signature.is_some() && is_judged_by_signature(program, op, definition);
        if is_judged && self.verified.has(program.signatures(), signature) {
            self.remember(signature);
            return Ok(true);
        }
        if !self.is_plain(op, definition) {
            self.check_by(op, name, definition)?;
        }
        if is_judged {
            self.remember(signature);
            self.verified.note(signature);
        }
        Ok(true)
    }
    /// Keeps what was found out for later programs.
    pub fn finish(self) {
        self.verified.leave(self.program.signatures(), self.program.has_aliases());
    }
    fn remember(&mut self, signature: SignatureId) {
        if self.is_right.len() <= signature.index() {
            self.is_right.resize(self.program.signatures().len(), false);
        }
        self.is_right[signature.index()] = true;
    }
    /// The op name `name` and its definition.
    fn definition(&mut self, name: StrId) -> (&'p str, Option<&'static Definition>) {
        if self.definitions.len() <= name.index() {
            let len = self.program.strings().len().max(name.index() + 1);
            self.definitions.resize(len, Lookup::NotYet);
            self.plain_types.resize(len, TypeId::NONE);
        }
        let known = &mut self.definitions[name.index()];
        if let Lookup::Found(name, definition) = *known {
            return (name, definition);
        }
        let name = self.program.str(name);
        let definition = definition_of(name);
        *known = Lookup::Found(name, definition);
        (name, definition)
    }
    /// Whether all values of `op` have one type, a valid tensor type, and the definition has no other
    /// condition, which is the case for most elementwise ops.
    fn is_plain(&mut self, op: OpId, definition: &Definition) -> bool {
        let program = self.program;
        if definition.is_plain != Some(program.num_operands(op))
            || program.num_results(op) != 1
            || program.num_regions(op) != 0
            || program.op_attrs(op).iter().any(|attr| is_inherent(program, attr.name))
        {
            return false;
        }
        // The elements of a constant are an attribute if they are not in custom syntax.
        let is_constant = !definition.attributes.is_empty() && definition.operands.is_empty();
        let ty = program.type_of(program.result(op, 0));
        if program.operands(op).any(|value| program.type_of(value) != ty)
            || is_constant && !program.has_written_value(op)
        {
            return false;
        }
        let name = program.op_name_id(op).index();
        if self.plain_types[name] == ty {
            return true;
        }
        let read = &self.types.get(ty).ty;
        let mut groups = definition.results.iter().chain(definition.operands.first());
        let is_right = groups.all(|group| super::constraint::admits(group.takes, read));
        if is_right {
            self.plain_types[name] = ty;
        }
        is_right
    }
    fn check_by(
        &mut self,
        op: OpId,
        name: &str,
        definition: &Definition,
    ) -> Result<(), Vec<String>> {
        let Self { program, types, last_ops, .. } = self;
        let program = *program;
        let mut only;
        let last = if let Some(last) = last_ops.of(program, op, definition) {
            last
        } else {
            only = LastOp::new(Attributes::of(program, op));
            &mut only
        };
        let counts = [program.num_operands(op), program.num_regions(op)];
        let values = program.operands(op).chain(program.op_results(op));
        let num_values = counts[0] + program.num_results(op);
        let mut differs_in_sizes = last.is_valid(counts, num_values);
        let (mut few, mut many);
        let all: &mut [&ValueType] = if num_values <= NUM_INLINE {
            few = [&ValueType::Token; NUM_INLINE];
            &mut few[..num_values]
        } else {
            many = vec![&ValueType::Token; num_values];
            &mut many
        };
        for (at, (place, value)) in all.iter_mut().zip(values).enumerate() {
            let read = types.of(value);
            differs_in_sizes = differs_in_sizes && last.outline(at) == read.outline;
            *place = &read.ty;
        }
        let (operands, results) = all.split_at(counts[0]);
        let mut regions = Vec::new();
        if counts[1] != 0 {
            regions.extend(program.op_regions(op).map(|id| region(program, types, id)));
        }
        let constants = |index: usize| constant_ints(program, op, index);
        let view = OpView {
            name,
            operands,
            results,
            attributes: &last.attributes,
            regions,
            constants: &constants,
            differs_in_sizes,
        };
        definition.check(&view)?;
        if !differs_in_sizes {
            let values = program.operands(op).chain(program.op_results(op));
            last.set_valid(counts, values.map(|value| types.of(value).outline));
        }
        Ok(())
    }
}

/// Ops with at most this many operands and results are checked without allocations for their types.
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
            .map_or(Vec::new(), |(_, last)| program.operands(last).map(type_of).collect()),
    }
}

/// Whether an attribute of this name may be in the definition of an op.
fn is_inherent(program: &Program, name: StrId) -> bool {
    !program.str(name).contains('.')
}

/// Whether ops with the signature of `op` are valid if `op` is: the checks look at nothing else. The signature says neither
/// what written regions hold nor which attributes are written as properties, which ops of definitions without attributes
/// must not have.
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
