//! `sdy-lift-inlined-meshes`: gives every inlined mesh a name, and merges equal meshes under one
//! name.
//!
//! New names are `mesh` (or `mesh_0`, ... where taken), `maximal_mesh_<device>` (by an option
//! `single_device_<device>`) and `empty_mesh`. Every
//! mesh also gets a `stablehlo.mesh` attribute with the same contents as a plain dictionary.

use super::replica_group_meshes;
use crate::attribute;
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, FuncId, Id, MeshId, OpId, ShardingId, StrId};
use crate::ir::{InsertPoint, OpKind, Payload, Place, Program, Span, SymbolTable};
use crate::mesh::Mesh;
use crate::sharding::TensorSharding;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// Runs the pass; `single_device_names` is whether maximal meshes are called
/// `single_device_<device>`.
pub fn run(program: &mut Program, _: &mut Context<'_>, single_device_names: bool) -> Result<()> {
    let mut lifting = Lifting::new(program, single_device_names);
    if !lifting.kept_names.is_empty() || program.meshes().iter().any(|mesh| mesh.symbol.is_none()) {
        lifting.name_meshes_of_shardings(program);
    }
    replica_group_meshes::lift(program, &mut lifting);
    for (op, mesh) in mesh_ops(program) {
        if program.attr(op, "stablehlo.mesh").is_none() {
            let text = stablehlo_mesh(program.mesh(mesh));
            program.set_attr(op, "stablehlo.mesh", &text);
        }
    }
    Ok(())
}

/// The `sdy.mesh` ops in order.
pub(super) fn mesh_ops(program: &Program) -> Vec<(OpId, MeshId)> {
    let ops = program.block_ops(program.module_block());
    let mesh_of = |op| match program.payload(op) {
        Some(&Payload::Mesh(mesh)) if program.kind(op) == OpKind::Mesh => Some((op, mesh)),
        _ => None,
    };
    ops.filter_map(mesh_of).collect()
}

/// The names of meshes during the pass.
pub(super) struct Lifting {
    symbols: SymbolTable,
    /// The named mesh that replaces each mesh.
    named: FxHashMap<Mesh, MeshId>,
    /// For each name of an erased mesh the name of the equal mesh that is kept.
    kept_names: FxHashMap<StrId, StrId>,
    /// Names of meshes that are described in a `StableHLO` attribute, by its text.
    described: FxHashMap<String, StrId>,
    /// The last `sdy.mesh` op: new ones are inserted after it.
    last_op: OpId,
    /// Whether maximal meshes are called `single_device_<device>`.
    single_device_names: bool,
}

impl Lifting {
    /// Erases the ops of meshes that equal an earlier mesh.
    fn new(program: &mut Program, single_device_names: bool) -> Self {
        let mut named: FxHashMap<Mesh, MeshId> = FxHashMap::default();
        let mut kept_names = FxHashMap::default();
        let mut last_op = OpId::NONE;
        for (op, mesh) in mesh_ops(program) {
            if let Some(&kept) = named.get(program.mesh(mesh)) {
                let dropped = program.take_mesh_symbol(mesh);
                kept_names.extend(dropped.zip(program.meshes()[kept].symbol));
                program.erase_op(op);
            } else {
                named.insert(program.mesh(mesh).clone(), mesh);
                last_op = op;
            }
        }
        let symbols = SymbolTable::new(program);
        let described = FxHashMap::default();
        Self { symbols, named, kept_names, described, last_op, single_device_names }
    }
    /// Replaces the meshes of all shardings by named ones; new meshes are made in the order in
    /// which shardings over them appear.
    fn name_meshes_of_shardings(&mut self, program: &mut Program) {
        let loc = program.loc(program.module_op());
        for inlined in inlined_meshes_in_order(program) {
            let mesh = program.mesh(inlined).clone();
            self.name_of_mesh(program, mesh, loc);
        }
        program.transform_shardings(|program, id| {
            let old = &program.shardings()[id];
            match self.named.get(program.mesh(old.mesh)) {
                Some(&mesh) if mesh != old.mesh => {
                    let new = TensorSharding { mesh, ..old.clone() };
                    program.intern_sharding(new)
                }
                _ => id,
            }
        });
    }
    /// The name that replaces `name`, the name of an erased mesh.
    pub(super) fn kept_name(&self, name: StrId) -> Option<StrId> {
        self.kept_names.get(&name).copied()
    }
    /// The name of `mesh`, a new one if it has none.
    pub(super) fn name_of_mesh(&mut self, program: &mut Program, mesh: Mesh, loc: Span) -> StrId {
        let known = self.named.get(&mesh).and_then(|&id| program.meshes()[id].symbol);
        known.unwrap_or_else(|| {
            let (id, name) = self.create(program, mesh.clone(), loc);
            self.named.insert(mesh, id);
            name
        })
    }
    /// The name of the mesh that `text` describes, a new one if the text is new.
    pub(super) fn name_of_description(
        &mut self,
        program: &mut Program,
        text: String,
        mesh: Mesh,
        loc: Span,
    ) -> StrId {
        if let Some(&name) = self.described.get(&text) {
            return name;
        }
        let (_, name) = self.create(program, mesh, loc);
        self.described.insert(text, name);
        name
    }
    /// Adds a `sdy.mesh`.
    fn create(&mut self, program: &mut Program, mesh: Mesh, loc: Span) -> (MeshId, StrId) {
        let wanted = if mesh.is_maximal() {
            let prefix = if self.single_device_names { "single_device" } else { "maximal_mesh" };
            format!("{prefix}_{}", mesh.device_ids[0])
        } else if mesh.axes.is_empty() && mesh.device_ids.is_empty() {
            "empty_mesh".to_owned()
        } else {
            "mesh".to_owned()
        };
        let wanted = program.intern(&wanted);
        let name = self.symbols.reserve(program, wanted, FuncId::NONE);
        let start = Place::Start(program.module_block());
        let place = self.last_op.get().map_or(start, Place::After);
        let (id, op) = program.create_mesh(name, mesh, InsertPoint { place, loc });
        self.last_op = op;
        (id, name)
    }
}

/// Meshes without names, in the order of the first sharding over each: ops in pre-order, arguments
/// before results.
fn inlined_meshes_in_order(program: &Program) -> Vec<MeshId> {
    let mut is_listed: Vec<bool> =
        program.meshes().iter().map(|mesh| mesh.symbol.is_some()).collect();
    let mut order = Vec::new();
    let mut visit = |sharding: ShardingId| {
        let mesh = program.mesh_of(sharding);
        if mesh.is_some() && !std::mem::replace(&mut is_listed[mesh.index()], true) {
            order.push(mesh);
        }
    };
    for op in program.pre_order(program.module_op()) {
        let entry = program.op_regions(op).next().map(|region| program.region_entry(region));
        if let Some(entry) = entry.and_then(BlockId::get) {
            program.block_args(entry).for_each(|arg| visit(program.sharding(arg)));
        }
        if let Some(func) = program.function_of(op).get() {
            let ports = program.func_args(func).iter().chain(program.func_results(func));
            ports.for_each(|port| visit(port.sharding));
        }
        program.op_results(op).for_each(|result| visit(program.sharding(result)));
        if let Some(shardings) = program.no_result_shardings(op) {
            shardings.iter().copied().for_each(&mut visit);
        }
    }
    order
}

/// The dictionary that describes `mesh`.
fn stablehlo_mesh(mesh: &Mesh) -> String {
    let mut text = String::from("{axes = [");
    for (index, axis) in mesh.axes.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        text.push_str(separator);
        text.push_str("{name = ");
        attribute::write_string(&mut text, &axis.name);
        let _ = write!(text, ", size = {} : i64}}", axis.size);
    }
    text.push(']');
    if !mesh.device_ids.is_empty() {
        let _ = write!(text, ", device_ids = {}", device_id_elements(mesh));
    }
    text.push('}');
    text
}

/// The device ids of `mesh`, which lists some, as the elements of an attribute.
pub(super) fn device_id_elements(mesh: &Mesh) -> String {
    let ids: Vec<String> = mesh.device_ids.iter().map(i64::to_string).collect();
    let count = ids.len();
    let all_equal = mesh.device_ids.iter().all(|&id| id == mesh.device_ids[0]);
    let elements = if all_equal { ids[0].clone() } else { format!("[{}]", ids.join(", ")) };
    format!("dense<{elements}> : tensor<{count}xi64>")
}
