//! The names that attributes of custom syntax have in the generic form.

/// The name, in the generic form, of the attribute that the custom syntax of `op` calls `word`.
pub(super) fn generic_name<'a>(op: &str, word: &'a str) -> &'a str {
    let op = || op.strip_prefix("stablehlo.").unwrap_or(op);
    match word {
        "dims" => match op() {
            "broadcast_in_dim" | "dynamic_broadcast_in_dim" => "broadcast_dimensions",
            "transpose" => "permutation",
            "reverse" => "dimensions",
            _ => word,
        },
        "dim" => match op() {
            "iota" | "dynamic_iota" => "iota_dimension",
            "concatenate" | "get_dimension_size" | "set_dimension_size" => "dimension",
            _ => word,
        },
        "sizes" => match op() {
            "dynamic_slice" => "slice_sizes",
            "broadcast" => "broadcast_sizes",
            _ => word,
        },
        "low" | "high" | "interior" if op() == "pad" => match word {
            "low" => "edge_padding_low",
            "high" => "edge_padding_high",
            _ => "interior_padding",
        },
        "type" if op() == "fft" => "fft_type",
        "length" if op() == "fft" => "fft_length",
        "config" if matches!(op(), "einsum" | "unary_einsum") => "einsum_config",
        "distribution" if op() == "rng" => "rng_distribution",
        "algorithm" if op() == "rng_bit_generator" => "rng_algorithm",
        _ => word,
    }
}
