//! Checks that are specific to ops of `mpmd` without regions: meshes against the topology of the
//! function, calls against their callees.
//!
//! Messages are those of the reference; most do not name the op.
//!
//! Source: the verifiers of the dialect's ops.

use super::Verifier;
use crate::attribute::{read_lone_sharding, verify_sharding, StandaloneScope};
use crate::axis::total_size;
use crate::index::{FuncId, OpId, TypeId, ValueId};
use crate::ir::{OpKind, Payload, ValueDef};
use crate::mesh::Mesh;
use crate::mlir::{function_around, op_attribute, topology, AttrValue, MeshTensor, TOPOLOGY};
use std::sync::Arc;

/// The attribute of arguments, results and transfers with their memory kind.
const MEMORY: &str = "mhlo.memory_kind";
/// The memory kinds that the type of a tensor may have.
const MEMORIES: [&str; 2] = ["pinned_host", "device"];

pub(super) type Checked = Result<(), String>;

impl Verifier<'_> {
    /// The checks that are specific to `op`, which conforms to its definition.
    pub(super) fn pipeline(&self, op: OpId) -> Checked {
        match self.program.op_name(op) {
            "mpmd.transfer" => self.transfer(op),
            "mpmd.assign" => self.assignment(op, &self.operand_types(op), &self.result_types(op)),
            "mpmd.unassign" => self.assignment(op, &self.result_types(op), &self.operand_types(op)),
            "mpmd.reduce" => self.mpmd_reduce(op),
            "mpmd.call" => self.mpmd_call(op),
            "mpmd.fragment_call" => self.fragment_call(op),
            "mpmd.fragment" => self.fragment(op).and_then(|()| self.ends_with_mpmd(op)),
            "mpmd.named_computation" => {
                self.mpmd_computation(op).and_then(|()| self.ends_with_mpmd(op))
            }
            "mpmd.for" => self.mpmd_for(op).and_then(|()| self.ends_with_mpmd(op)),
            _ => Ok(()),
        }
    }
    pub(super) fn types(&self, values: impl Iterator<Item = ValueId>) -> Vec<TypeId> {
        values.map(|value| self.program.type_of(value)).collect()
    }
    pub(super) fn operand_types(&self, op: OpId) -> Vec<TypeId> {
        self.types(self.program.operands(op))
    }
    pub(super) fn result_types(&self, op: OpId) -> Vec<TypeId> {
        self.types(self.program.op_results(op))
    }
    pub(super) fn text(&self, ty: TypeId) -> &str {
        self.program.type_text(ty)
    }
    /// The mesh called `name` in the topology of the function around `op`.
    pub(super) fn mesh_called(&self, op: OpId, name: &str) -> Result<Mesh, String> {
        let function = function_around(self.program, op);
        let meshes = function.and_then(|function| topology(self.program, function));
        let Some(meshes) = meshes else {
            let function = function.and_then(|function| self.program.symbol_of(function));
            let function = function.unwrap_or_default();
            return Err(format!("Function does not have a {TOPOLOGY} attribute: {function}"));
        };
        let mesh = meshes.into_iter().find(|(other, _)| *other == name).map(|(_, mesh)| mesh);
        mesh.ok_or_else(|| format!("Topology doesn't have a mesh with name: {name}"))
    }
    /// Checks the sharding of a tensor on `mesh`.
    pub(super) fn on_mesh(&self, op: OpId, tensor: MeshTensor<'_>, mesh: &Mesh) -> Checked {
        let Some(text) = tensor.sharding else { return Ok(()) };
        let name = self.program.op_name(op);
        let of_op = |message: &str| format!("'{name}' op {message}");
        let known = Arc::new(mesh.clone());
        let resolve = |_: &str| Some(known.clone());
        let mut scope = StandaloneScope::new(&resolve, &[], self.program.shardy());
        let read = read_lone_sharding(text, 0, &mut scope);
        let read = read.map_err(|error| of_op(&error.diagnostics[0].message))?;
        let shape = self.program.types()[tensor.tensor].shape().unwrap_or_default();
        // The rank is checked first.
        let is_of_rank = read.sharding.dims.len() == shape.len() || mesh.is_maximal();
        let found = verify_sharding(&read.sharding, mesh, Some(shape), self.program.shardy());
        let mut problems = read.problems.iter().chain(&found);
        let first = if is_of_rank { problems.next() } else { found.last() };
        if let Some(problem) = first {
            return Err(of_op(&problem.message));
        }
        for (at, (dim, size)) in read.sharding.dims.iter().zip(shape).enumerate() {
            let (Some(size), parts) = (*size, total_size(&dim.axes, mesh)) else { continue };
            if parts > 0 && size % parts != 0 {
                return Err(of_op(&format!(
                    "dim {at} with size {size} is not divisible by its sharded size {parts}"
                )));
            }
        }
        Ok(())
    }
    /// The parts of `ty`, whose mesh has to be in the topology.
    fn in_topology(&self, op: OpId, ty: TypeId) -> Result<Option<MeshTensor<'_>>, String> {
        let Some(tensor) = MeshTensor::of(self.program, ty) else { return Ok(None) };
        let mesh = self.mesh_called(op, tensor.mesh)?;
        self.on_mesh(op, tensor, &mesh)?;
        Ok(Some(tensor))
    }

    fn transfer(&self, op: OpId) -> Checked {
        let types = [self.operand_types(op)[0], self.result_types(op)[0]];
        let (from, to) = (self.in_topology(op, types[0])?, self.in_topology(op, types[1])?);
        let (Some(from), Some(to)) = (from, to) else { return Ok(()) };
        if from.tensor != to.tensor {
            return Err(format!(
                "cannot perform transfer between given types '{}' and '{}': global tensor types are different",
                self.text(types[0]),
                self.text(types[1])
            ));
        }
        for kind in [from, to].into_iter().filter_map(|tensor| tensor.memory_kind) {
            if !MEMORIES.contains(&kind) {
                let [host, device] = MEMORIES;
                return Err(format!(
                    "memory kind must be either '{host}' or '{device}'. Found '{kind}'."
                ));
            }
        }
        let is_host = |kind: Option<String>| kind.is_some_and(|kind| kind == MEMORIES[0]);
        let operand = self.program.operands(op).next();
        if is_host(operand.and_then(|value| self.memory_of(op, value))) {
            let message = "Transfers from host with attributes are not supported. Memory kinds must be expressed in \
                           the type.";
            return Err(message.to_owned());
        }
        if is_host(self.memory_attribute(self.program.attr(op, MEMORY))) {
            let message =
                "Transfers to host with attributes are not supported. Memory kinds must expressed be in the type.";
            return Err(message.to_owned());
        }
        Ok(())
    }
    /// The memory kind of `value`, an operand of the transfer `op`, according to attributes.
    fn memory_of(&self, op: OpId, value: ValueId) -> Option<String> {
        let program = self.program;
        match program.def(value) {
            ValueDef::Arg(_) => {
                let id = program.function_of(function_around(program, op)?).get()?;
                let port = program.func_args(id).get(program.value_index(value))?;
                let attrs = program.attr_list(port.attrs).iter();
                let attr = attrs.into_iter().find(|attr| program.str(attr.name) == MEMORY)?;
                self.memory_attribute(Some(program.text().get(attr.value)))
            }
            ValueDef::Result(maker) if program.kind(maker) == OpKind::Transfer => {
                self.memory_attribute(program.attr(maker, MEMORY))
            }
            ValueDef::Result(maker) => {
                let AttrValue::Array(results) = op_attribute(program, maker, "res_attrs")? else {
                    return None;
                };
                let has_own = matches!(
                    program.kind(maker),
                    OpKind::Fragment | OpKind::MpmdCall | OpKind::FragmentCall | OpKind::MpmdFor
                );
                let AttrValue::Dict(fields) = results.get(program.value_index(value))? else {
                    return None;
                };
                let mut fields = fields.iter().filter(|_| has_own);
                match fields.find(|(name, _)| *name == MEMORY) {
                    Some((_, AttrValue::Str(kind))) => Some(kind.clone().into_owned()),
                    _ => None,
                }
            }
        }
    }
    fn memory_attribute(&self, text: Option<&str>) -> Option<String> {
        let text = self.program.resolved_alias(text?.trim());
        Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned())
    }
    /// Checks an op that converts a tensor of type `local` to type `on_mesh` on a mesh, or back.
    fn assignment(&self, op: OpId, local: &[TypeId], on_mesh: &[TypeId]) -> Checked {
        let ([local], [on_mesh]) = (local, on_mesh) else { return Ok(()) };
        let Some(tensor) = self.in_topology(op, *on_mesh)? else { return Ok(()) };
        let is_sharded = tensor.sharding.is_some_and(|text| {
            let dims = text.find('[').map_or("", |start| &text[start..]);
            let dims = dims.rfind(']').map_or(dims, |end| &dims[..end]);
            dims.contains('"')
        });
        if is_sharded {
            let text = self.text(*on_mesh);
            return Err(format!("MeshTensorType should be fully replicated: '{text}'"));
        }
        if tensor.tensor != *local {
            return Err(format!(
                "mismatch between the given local type '{}' and mesh_type ranked tensor type: '{}'",
                self.text(*local),
                self.text(tensor.tensor)
            ));
        }
        Ok(())
    }
    fn mpmd_reduce(&self, op: OpId) -> Checked {
        let program = self.program;
        let given = program.attr(op, "reduction").map(|text| program.resolved_alias(text.trim()));
        let syntax = || {
            let name = program.name_span(op)?;
            let text = program.text().source().get(name.end as usize..)?.trim_start();
            Some(program.resolved_alias(text.split_once('>').map_or(text, |(kind, _)| kind)))
        };
        let kind = given.or_else(syntax).unwrap_or("none");
        let word = kind.rsplit('<').next().unwrap_or_default().trim_end_matches('>');
        let word = word.trim().trim_matches('"');
        let is_none = word == "none" || word == "reduction none" || !kind.contains('<');
        if is_none && program.num_operands(op) != 1 {
            let message = "ReduceOp must have exactly one operand if the reduction type is none";
            return Err(message.to_owned());
        }
        Ok(())
    }
    pub(super) fn callee(&self, op: OpId) -> Result<FuncId, String> {
        let Some(&Payload::Call(name)) = self.program.payload(op) else { return Ok(FuncId::NONE) };
        let name = self.program.str(name);
        let found = self.nearest_function(op, name);
        found.ok_or_else(|| format!("'{name}' does not reference a valid function"))
    }
    pub(super) fn port_types(&self, callee: FuncId) -> [Vec<TypeId>; 2] {
        let program = self.program;
        let types = |ports: &[crate::ir::Port]| ports.iter().map(|port| port.ty).collect();
        [types(program.func_args(callee)), types(program.func_results(callee))]
    }
    fn mpmd_call(&self, op: OpId) -> Checked {
        let program = self.program;
        if let Some(text) = program.attr(op, "call_counter") {
            let text = program.resolved_alias(text.trim());
            let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
            let ty = text.rsplit_once(':').map_or("i64", |(_, ty)| ty.trim());
            if is_number && ty != "ui32" {
                return Err(format!("call_counter must be an uint32, got '{ty}'"));
            }
        }
        let name = match program.payload(op) {
            Some(&Payload::Call(name)) => program.str(name),
            _ => "",
        };
        let parent = program.parent_op(op).unwrap_or_else(|| program.module_op());
        if !matches!(program.kind(parent), OpKind::Func | OpKind::MpmdFor) {
            return Err(format!(
                "Mpmd CallOp on \"{name}\" can only be used in a function or for_op block but was called from inside op \
                 {}",
                program.op_name(parent)
            ));
        }
        if let Some(function) = function_around(program, op) {
            if program.attr(function, TOPOLOGY).is_some() && !self.is_public(function) {
                return Err(format!(
                    "Mpmd CallOp on \"{name}\" in an Mpmd function can only be used directly by the entrypoint \
                     function, i.e. the main function, but was called from \"{}\".",
                    program.symbol_of(function).unwrap_or_default()
                ));
            }
        }
        let callee = self.callee(op)?;
        if callee.is_none() {
            return Ok(());
        }
        let [inputs, results] = self.port_types(callee);
        let sides = [
            ("operand", inputs, self.operand_types(op)),
            ("result", results, self.result_types(op)),
        ];
        for (side, needs, has) in sides {
            let wrong = needs.iter().zip(&has).find(|(needs, has)| needs != has);
            if let Some((needs, has)) = wrong {
                return Err(format!(
                    "Type mismatch. Expected call {side} to have type '{}' but got '{}'",
                    self.text(*needs),
                    self.text(*has)
                ));
            }
        }
        let function = program.func_op(callee);
        if program.attr(function, TOPOLOGY).is_some() && !program.is_private(callee) {
            let message =
                "MPMD CallOp callee with topology must also have visibility set to private, as public functions with \
                 topologies are assumed to be entry point functions.";
            return Err(message.to_owned());
        }
        Ok(())
    }
    fn is_public(&self, function: OpId) -> bool {
        let id = self.program.function_of(function);
        let written = self.program.attr(function, "sym_visibility");
        !self.program.is_private(id)
            && written.is_none_or(|text| text.trim_matches('"') == "public")
    }
}
