//! Checks the computations of `mpmd`, Shardy's dialect for pipelines, against the ops around them:
//! fragments, the functions that fragment calls refer to, named computations, loops.
//!
//! Messages are those of the reference; most do not name the op.
//!
//! Source: the verifiers of the dialect's ops.

use super::pipelines::Checked;
use super::Verifier;
use crate::attribute::{parse_mesh, print_mesh};
use crate::index::{OpId, TypeId};
use crate::ir::{OpKind, OpTraits, Payload, Type};
use crate::mesh::Mesh;
use crate::mlir::{op_attribute, text_is_of, AttrValue, MeshTensor};

/// The attribute of a function with the mesh of the whole function.
const MESH: &str = "mesh_shape";
/// The start of the message that a function lacks that attribute.
pub(super) const LACKS_MESH: &str = "Function does not have a mesh_shape attribute: ";

/// The types inside a computation and outside of it, with their names in messages.
struct Sides {
    inner: Vec<TypeId>,
    outer: Vec<TypeId>,
    inner_name: &'static str,
    outer_name: &'static str,
}

impl Sides {
    fn new(names: [&'static str; 2], inner: Vec<TypeId>, outer: Vec<TypeId>) -> Self {
        Self { inner, outer, inner_name: names[0], outer_name: names[1] }
    }
    fn count(&self) -> Checked {
        let (inner, outer) = (self.inner.len(), self.outer.len());
        if inner == outer {
            return Ok(());
        }
        Err(format!(
            "number of {}s must match the number of {}s respectively: {inner} != {outer}",
            self.inner_name, self.outer_name
        ))
    }
    fn pairs(&self) -> impl Iterator<Item = (TypeId, TypeId)> + '_ {
        self.inner.iter().copied().zip(self.outer.iter().copied())
    }
}

const ARGS: [&str; 2] = ["block argument", "operand"];
const RESULTS: [&str; 2] = ["returned value", "result"];

impl Verifier<'_> {
    fn arg_types(&self, op: OpId) -> Vec<TypeId> {
        let body = self.body(op);
        body.map_or_else(Vec::new, |body| self.types(self.program.block_args(body)))
    }
    fn returned_types(&self, op: OpId) -> Vec<TypeId> {
        let last = self.body(op).and_then(|body| self.program.last_op(body).get());
        last.map_or_else(Vec::new, |last| self.types(self.program.operands(last)))
    }
    pub(super) fn fragment(&self, op: OpId) -> Checked {
        let Some(&Payload::Fragment { mesh, header, .. }) = self.program.payload(op) else {
            return Ok(());
        };
        let name = self.program.str(mesh);
        let stage = self.program.str(header).rsplit_once("], stage=").map(|(_, stage)| stage);
        let stage = stage.and_then(|stage| stage.split(", ").next());
        if stage.is_some_and(|stage| stage.contains(':') && !stage.ends_with(":i64")) {
            let message = "'mpmd.fragment' op attribute 'stage_id' failed to satisfy constraint: 64-bit signless \
                           integer attribute";
            return Err(message.to_owned());
        }
        self.fits_fragment(
            op,
            name,
            &Sides::new(ARGS, self.arg_types(op), self.operand_types(op)),
        )?;
        let results = Sides::new(RESULTS, self.returned_types(op), self.result_types(op));
        self.fits_fragment(op, name, &results)
    }
    /// Checks that the types inside `op`, a fragment on the mesh called `name`, are those of the
    /// whole tensors outside.
    fn fits_fragment(&self, op: OpId, name: &str, sides: &Sides) -> Checked {
        sides.count()?;
        let mut known: Option<Mesh> = None;
        for (inner, outer) in sides.pairs() {
            if known.is_none() {
                known = Some(self.mesh_called(op, name)?);
            }
            let (inner_name, outer_name) = (sides.inner_name, sides.outer_name);
            let Some(tensor) = MeshTensor::of(self.program, outer) else {
                if inner != outer {
                    return Err(format!(
                        "expected the type of the {inner_name} to match the {outer_name}: '{}', got: '{}'",
                        self.text(outer),
                        self.text(inner)
                    ));
                }
                continue;
            };
            if tensor.mesh != name {
                return Err(format!(
                    "expected the mesh name of the {outer_name} to match that of the fragment op: {} != {name}",
                    tensor.mesh
                ));
            }
            if let Some(mesh) = &known {
                self.on_mesh(op, tensor, mesh)?;
            }
            if inner != tensor.tensor {
                return Err(format!(
                    "expected the type of the {inner_name} to be global tensor type {outer_name}: '{}', got: '{}'",
                    self.text(tensor.tensor),
                    self.text(inner)
                ));
            }
        }
        Ok(())
    }
    pub(super) fn fragment_call(&self, op: OpId) -> Checked {
        let program = self.program;
        let callee = self.callee(op)?;
        let Some(name) = self.mesh_of_call(op).filter(|_| callee.is_some()) else { return Ok(()) };
        let [inputs, results] = self.port_types(callee);
        self.fits_fragment(op, &name, &Sides::new(ARGS, inputs, self.operand_types(op)))?;
        self.fits_fragment(op, &name, &Sides::new(RESULTS, results, self.result_types(op)))?;
        let function = program.func_op(callee);
        let text = program.attr(function, MESH).map(|text| program.resolved_alias(text.trim()));
        let text = text.filter(|text| text_is_of(text, "sdy", "mesh"));
        let Some(of_callee) = text.and_then(|text| parse_mesh(text, 0).ok()) else {
            let symbol = program.symbol_of(function).unwrap_or_default();
            return Err(format!("{LACKS_MESH}{symbol}"));
        };
        let own = self.mesh_called(op, &name)?;
        if own == of_callee {
            return Ok(());
        }
        Err(format!(
            "Expected mesh of fragment call and callee function to match: #sdy.mesh{} vs #sdy.mesh{}",
            print_mesh(&own),
            print_mesh(&of_callee)
        ))
    }
    /// The function that `op` calls, if it is a fragment call: the op to report errors at.
    pub(super) fn function_to_blame(&self, op: OpId) -> Option<OpId> {
        let is_call = self.program.kind(op) == OpKind::FragmentCall;
        let callee = self.callee(op).ok().filter(|_| is_call)?.get()?;
        Some(self.program.func_op(callee))
    }
    /// The name of the mesh of `op`, a fragment call.
    fn mesh_of_call(&self, op: OpId) -> Option<String> {
        let program = self.program;
        if let Some(AttrValue::Str(name)) = op_attribute(program, op, "mesh_name") {
            return Some(name.into_owned());
        }
        let name = program.name_span(op)?;
        let text = program.text().source().get(name.end as usize..)?;
        let text = &text[text.find('=')? + 1..];
        let quoted = text.trim_start().strip_prefix('"')?;
        quoted.split_once('"').map(|(name, _)| name.to_owned())
    }
    pub(super) fn mpmd_computation(&self, op: OpId) -> Checked {
        let sides = [
            Sides::new(ARGS, self.arg_types(op), self.operand_types(op)),
            Sides::new(RESULTS, self.returned_types(op), self.result_types(op)),
        ];
        for sides in sides {
            sides.count()?;
            if let Some((inner, outer)) = sides.pairs().find(|(inner, outer)| inner != outer) {
                return Err(format!(
                    "expected the type of the {} to match the type of {}: '{}', got: '{}'",
                    sides.inner_name,
                    sides.outer_name,
                    self.text(inner),
                    self.text(outer)
                ));
            }
        }
        Ok(())
    }
    pub(super) fn mpmd_for(&self, op: OpId) -> Checked {
        let (operands, results) = (self.operand_types(op), self.result_types(op));
        if operands.len() != results.len() {
            return Err("'mpmd.for' op requires the same number of operands and results".to_owned());
        }
        if let Some(at) = (0..operands.len()).find(|&at| operands[at] != results[at]) {
            return Err(format!(
                "'mpmd.for' op requires the same type for operand and result at index {at}"
            ));
        }
        let args = self.arg_types(op);
        let Some((index, args)) =
            args.split_last().filter(|(_, args)| args.len() == operands.len())
        else {
            return Err("wrong number of arguments for region".to_owned());
        };
        if let Some(at) = (0..args.len()).find(|&at| args[at] != operands[at]) {
            return Err(format!("wrong argument type at argument no. {at}"));
        }
        if let Type::RankedTensor { shape, element, .. } = &self.program.types()[*index] {
            let element = self.program.str(element.text);
            if !shape.is_empty() || !matches!(element, "i32" | "si32" | "ui32") {
                return Err("index must have a 32-bit integer rank-0 tensor type".to_owned());
            }
        }
        if self.returned_types(op) != results {
            return Err("type mismatch for result of region".to_owned());
        }
        let class = |ty: &TypeId| self.class(*ty);
        let mut classes = operands.iter().map(class);
        if let Some(first) = classes.next() {
            if classes.any(|class| class != first) {
                return Err("type ids in operands/results are not identical".to_owned());
            }
        }
        let number =
            |name: &str| op_attribute(self.program, op, name).and_then(|value| value.as_int());
        let iterations = number("iterations").unwrap_or(0);
        if iterations <= 0 {
            return Err("number of iterations must be greater than zero".to_owned());
        }
        let factor = number("unroll_factor").unwrap_or(1);
        if factor == 0 || iterations % factor != 0 {
            return Err(format!(
                "number of iterations {iterations} isn't divisible by unroll factor {factor}"
            ));
        }
        Ok(())
    }
    /// The text that distinguishes the class of `ty` in MLIR from other classes of types.
    fn class(&self, ty: TypeId) -> String {
        let other = |text: &str| {
            let end = text.find(['<', '(']).unwrap_or(text.len());
            let word = &text[..end];
            let is_integer = word.trim_start_matches(['s', 'u', 'i']).parse::<u32>().is_ok();
            if is_integer {
                "integer".to_owned()
            } else {
                word.to_owned()
            }
        };
        match &self.program.types()[ty] {
            Type::RankedTensor { .. } => "tensor".to_owned(),
            Type::MeshTensor { .. } => "mesh tensor".to_owned(),
            Type::UnrankedTensor(_) => "unranked tensor".to_owned(),
            Type::Tuple(_) => "tuple".to_owned(),
            Type::Other(text) => other(self.program.str(*text)),
        }
    }
    /// Checks that the terminator of the region of `op`, if it has one, is `mpmd.return`.
    pub(super) fn ends_with_mpmd(&self, op: OpId) -> Checked {
        let program = self.program;
        let last = self.body(op).and_then(|body| program.last_op(body).get());
        let Some(last) = last.filter(|&last| program.kind(last) != OpKind::MpmdReturn) else {
            return Ok(());
        };
        let (own, name) = (program.op_name(op), program.op_name(last));
        let traits = OpTraits::of_name(name);
        if traits.has(OpTraits::KNOWN) && !traits.has(OpTraits::TERMINATOR) {
            return Ok(());
        }
        Err(format!("'{own}' op expects regions to end with 'mpmd.return', found '{name}'"))
    }
}
