//! The meshes of annotations: those of the program, and new ones that are added to it.

use crate::attribute::print_mesh;
use crate::error::{Code, Diagnostic};
use crate::index::{MeshId, OpId, StrId};
use crate::ir::{InsertPoint, OpKind, Payload, Place, Program};
use crate::mesh::Mesh;
use crate::mlir::print;

/// The name of a mesh that is added to a program.
const NAME: &str = "mesh";

/// The mesh of `program` that is called `symbol` and equals `mesh`; it is added if no mesh is called that. Without a
/// symbol, the first mesh that equals it, or else one that is written in the sharding itself.
///
/// # Errors
/// The program has another mesh of that name.
pub fn mesh_for(
    program: &mut Program,
    mesh: &Mesh,
    symbol: Option<&str>,
) -> Result<MeshId, Diagnostic> {
    let Some(name) = symbol else {
        let is_equal = |id: &MeshId| program.mesh(*id) == mesh;
        let equal = program.meshes().ids().find(is_equal);
        return Ok(equal.unwrap_or_else(|| program.inlined_mesh(mesh)));
    };
    let wanted = program.intern(name);
    let Some(known) = program.mesh_by_symbol(wanted) else {
        let loc = program.loc(program.module_op());
        let at = InsertPoint { place: first_place(program), loc };
        return Ok(program.create_mesh(wanted, mesh.clone(), at).0);
    };
    if program.mesh(known) == mesh {
        return Ok(known);
    }
    let (theirs, ours) = (print_mesh(program.mesh(known)), print_mesh(mesh));
    let message = format!("the program's mesh @{name} is {theirs}, not {ours}");
    let hint = "write the sharding over the program's mesh, or under another name";
    Err(Diagnostic::new(Code::UnknownMesh, message).with_hint(hint))
}

/// The place after the last mesh, or at the start of the module.
fn first_place(program: &Program) -> Place {
    let meshes = program.block_ops(program.module_block()).filter(|&op| {
        program.kind(op) == OpKind::Mesh && matches!(program.payload(op), Some(Payload::Mesh(_)))
    });
    meshes.last().map_or(Place::Start(program.module_block()), Place::After)
}

/// The text of `program` with its only mesh replaced by `mesh`, or with `mesh` added if it has none. Shardings keep the names of
/// their axes, which the parser checks. Meshes without axes stay: single-device ones, for host callbacks, and those without
/// devices, for random keys.
///
/// # Errors
/// The program has several meshes, or one that is written in its shardings.
pub fn with_mesh(program: &mut Program, mesh: &Mesh) -> Result<String, Diagnostic> {
    let has_axes = |id: &MeshId| !program.mesh(*id).axes.is_empty();
    let rows: Vec<MeshId> = program.meshes().ids().filter(has_axes).collect();
    match rows[..] {
        [] => {
            let symbol = program.intern(NAME);
            match program.mesh_by_symbol(symbol) {
                Some(empty) if !program.mesh(empty).is_maximal() => {
                    replace(program, empty, symbol, mesh);
                }
                _ => drop(mesh_for(program, mesh, Some(NAME))?),
            }
            Ok(print(program))
        }
        [only] => match program.meshes()[only].symbol {
            Some(symbol) => {
                replace(program, only, symbol, mesh);
                Ok(print(program))
            }
            None => Err(several()),
        },
        _ => Err(several()),
    }
}

/// Makes the op that defines the mesh `old` define `mesh`, called `symbol`, instead. Shardings keep the axis names of `old`, which
/// are resolved when the text is parsed.
fn replace(program: &mut Program, old: MeshId, symbol: StrId, mesh: &Mesh) {
    let new = program.add_mesh(symbol, mesh.clone());
    let ops: Vec<OpId> = program.block_ops(program.module_block()).collect();
    for op in ops {
        if program.payload(op) == Some(&Payload::Mesh(old)) {
            program.set_payload(op, Payload::Mesh(new));
            program.remove_attr(op, "stablehlo.mesh");
        }
    }
}

fn several() -> Diagnostic {
    let message = "the program has several meshes, or one that is written in its shardings";
    let hint = "write one mesh that all shardings name: sdy.mesh @mesh = <[...]>";
    Diagnostic::new(Code::UnknownMesh, message).with_hint(hint)
}
