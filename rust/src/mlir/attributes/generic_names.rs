//! The names that attributes of custom syntax have in the generic form.

/// The name, in the generic form, of the attribute that the custom syntax of `op` calls `word`.
pub(super) fn generic_name<'a>(op: &str, word: &'a str) -> &'a str {
    match (op.strip_prefix("stablehlo.").unwrap_or(op), word) {
        ("iota" | "dynamic_iota", "dim") => "iota_dimension",
        ("concatenate" | "get_dimension_size" | "set_dimension_size", "dim") => "dimension",
        ("broadcast_in_dim" | "dynamic_broadcast_in_dim", "dims") => "broadcast_dimensions",
        ("transpose", "dims") => "permutation",
        ("reverse", "dims") => "dimensions",
        ("dynamic_slice", "sizes") => "slice_sizes",
        ("broadcast", "sizes") => "broadcast_sizes",
        ("pad", "low") => "edge_padding_low",
        ("pad", "high") => "edge_padding_high",
        ("pad", "interior") => "interior_padding",
        ("fft", "type") => "fft_type",
        ("fft", "length") => "fft_length",
        ("einsum" | "unary_einsum", "config") => "einsum_config",
        ("rng", "distribution") => "rng_distribution",
        ("rng_bit_generator", "algorithm") => "rng_algorithm",
        _ => word,
    }
}
