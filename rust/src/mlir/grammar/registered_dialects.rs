//! The dialects that the reference registers, and how much of each the engine knows.

/// How many ops of a dialect the engine knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mlir) enum Ops {
    /// All of a dialect.
    All,
    /// Some, or none.
    Some,
}

/// Which attributes or types a dialect has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Has {
    /// None.
    Nothing,
    /// These, by name.
    Only(&'static [&'static str]),
    /// Some; they are not known.
    Some,
}

/// A dialect.
pub(super) struct Dialect {
    name: &'static str,
    ops: Ops,
    pub attributes: Has,
    pub types: Has,
}

const fn dialect(name: &'static str, ops: Ops, attributes: Has, types: Has) -> Dialect {
    Dialect { name, ops, attributes, types }
}

/// The attributes of `StableHLO`.
const STABLEHLO: &[&str] = &[
    "axis_ref",
    "bounds",
    "channel_handle",
    "comparison_direction",
    "comparison_type",
    "conv",
    "dot",
    "dot_algorithm",
    "fft_type",
    "gather",
    "mesh",
    "mesh_axis",
    "output_operand_alias",
    "precision",
    "replica_group_mesh_axes",
    "result_accuracy",
    "result_accuracy_mode",
    "rng_algorithm",
    "rng_distribution",
    "scatter",
    "sub_axis_info",
    "transpose",
    "type_extensions",
];
/// The attributes of CHLO.
const CHLO: &[&str] = &["comparison_direction", "comparison_type", "precision", "ragged_dot"];
/// The attributes of Shardy.
const SDY: &[&str] = &[
    "all_to_all_param",
    "all_to_all_param_list",
    "axis_ref",
    "axis_ref_list",
    "axis_to_propagation_details",
    "dim_mapping",
    "dimension_sharding",
    "edge_value_ref",
    "list_of_axis_ref_lists",
    "manual_axes",
    "mesh",
    "mesh_axis",
    "op_sharding_rule",
    "propagation_edges",
    "propagation_one_step",
    "sharding",
    "sharding_per_value",
    "sub_axis_info",
    "tensor_mapping",
];

/// The attributes of Shardy's dialect of pipelines.
const MPMD: &[&str] = &[
    "mesh_with_origins",
    "meshes_with_origins",
    "named_mesh",
    "origin",
    "reduction",
    "topology",
    "user_origin",
];

/// The dialects that are registered when the reference parses programs.
const DIALECTS: [Dialect; 23] = [
    dialect("builtin", Ops::All, Has::Nothing, Has::Nothing),
    dialect("func", Ops::All, Has::Nothing, Has::Nothing),
    dialect("stablehlo", Ops::All, Has::Only(STABLEHLO), Has::Only(&["token", "future"])),
    dialect("chlo", Ops::All, Has::Only(CHLO), Has::Nothing),
    dialect("sdy", Ops::All, Has::Only(SDY), Has::Nothing),
    dialect("affine", Ops::Some, Has::Nothing, Has::Nothing),
    dialect("arith", Ops::Some, Has::Some, Has::Nothing),
    dialect("cf", Ops::Some, Has::Nothing, Has::Nothing),
    dialect("complex", Ops::Some, Has::Some, Has::Nothing),
    dialect("gpu", Ops::Some, Has::Some, Has::Some),
    dialect("llvm", Ops::Some, Has::Some, Has::Some),
    dialect("math", Ops::Some, Has::Nothing, Has::Nothing),
    dialect("memref", Ops::Some, Has::Nothing, Has::Nothing),
    dialect("mhlo", Ops::Some, Has::Some, Has::Only(&["token", "async_bundle"])),
    dialect("mpmd", Ops::All, Has::Only(MPMD), Has::Only(&["mesh_tensor"])),
    dialect("nvgpu", Ops::Some, Has::Some, Has::Some),
    dialect("nvvm", Ops::Some, Has::Some, Has::Nothing),
    dialect("scf", Ops::Some, Has::Nothing, Has::Nothing),
    dialect(
        "shape",
        Ops::Some,
        Has::Nothing,
        Has::Only(&["shape", "size", "value_shape", "witness"]),
    ),
    dialect("tensor", Ops::Some, Has::Nothing, Has::Nothing),
    dialect("ub", Ops::Some, Has::Some, Has::Nothing),
    dialect("vector", Ops::Some, Has::Some, Has::Nothing),
    dialect("vhlo", Ops::Some, Has::Some, Has::Some),
];

/// The dialect called `name`, if the reference registers it.
pub(super) fn registered(name: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().find(|dialect| dialect.name == name)
}

/// How many ops of the dialect `name` are known; `None` if the reference does not register it.
pub(in crate::mlir) fn known_dialect(name: &str) -> Option<Ops> {
    registered(name).map(|dialect| dialect.ops)
}

/// MLIR's error for `name`, which is not an attribute or type of `dialect`.
pub(super) fn unknown(dialect: &Dialect, kind: &str, name: &str) -> String {
    let has = if kind == "type" { dialect.types } else { dialect.attributes };
    let of = dialect.name;
    match (of, kind) {
        _ if has == Has::Nothing => format!("dialect '{of}' provides no {kind} parsing hook"),
        ("stablehlo", "attribute") => "unknown StableHLO attribute".to_owned(),
        ("chlo", "attribute") => "unknown chlo attribute".to_owned(),
        ("stablehlo" | "mhlo", _) => format!("unknown {of} type: {name}"),
        (_, "attribute") => format!("unknown attribute `{name}` in dialect `{of}`"),
        _ => format!("unknown  type `{name}` in dialect `{of}`"),
    }
}
