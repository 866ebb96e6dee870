//! The algorithms of dot products that `StableHLO` knows to be supported by hardware.

/// The error message for `#stablehlo.dot_algorithm<...>` with this `body`, which has all fields in their order; `None`
/// if the algorithm is a known one.
pub(super) fn problem(body: &str) -> Option<String> {
    let body = body.trim().trim_start_matches('<').trim_end_matches('>');
    let value = |field| str::split_once(field, '=').map_or("", |(_, value)| value.trim());
    let values: Vec<&str> = body.split(',').map(value).collect();
    let &[lhs, rhs, sum, lhs_count, rhs_count, num_operations, imprecise] = &values[..] else {
        return None;
    };
    let counts = [lhs_count, rhs_count, num_operations];
    let [lhs_count, rhs_count, num_operations] = counts.map(|text| text.parse().unwrap_or(0_i64));
    for (count, what) in [
        (lhs_count, "lhs component count"),
        (rhs_count, "rhs component count"),
        (num_operations, "num primitive operations"),
    ] {
        if count < 1 {
            return Some(format!("{what} must be positive"));
        }
    }
    let is_imprecise = !matches!(imprecise, "false" | "0");
    let is_single = lhs_count == 1 && rhs_count == 1;
    if is_single && is_known([lhs, rhs, sum], num_operations, is_imprecise) {
        return None;
    }
    let imprecise = u8::from(is_imprecise);
    Some(format!(
        "dot algorithm not known to be supported on any hardware: {{lhs:'{lhs}', rhs:'{rhs}', \
         accum:'{sum}', lhs_components:{lhs_count}, rhs_components:{rhs_count}, \
         primitive_ops:{num_operations}, imprecise:{imprecise}}}"
    ))
}

fn is_known([lhs, rhs, sum]: [&str; 3], num_operations: i64, is_imprecise: bool) -> bool {
    let is_f8 = |ty: &str| ty.starts_with("f8") && ty != "f8E8M0FNU";
    if is_f8(lhs) && is_f8(rhs) && sum == "f32" && num_operations == 1 {
        return true;
    }
    let known: &[i64] = match (lhs, sum) {
        ("f16" | "f32", "f32") | ("f16", "f16") | ("f64", "f64") | ("bf16", "bf16") => &[1],
        ("bf16", "f32") => &[1, 3, 6, 9],
        ("tf32", "f32") => &[1, 3],
        _ => &[],
    };
    !is_imprecise && lhs == rhs && known.contains(&num_operations)
}
