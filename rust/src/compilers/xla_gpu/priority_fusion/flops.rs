//! Clock cycles of elementwise ops on a thread of an H100, which XLA uses as their flops.
//!
//! Source: the profiles of ops in XLA's `HloOpProfiler`, for compute capability 9.0.

/// Cycles of an op that was not profiled.
const DEFAULT: f64 = 3.0;

/// Whether the chip has the op `name` for `bf16`.
///
/// Source: XLA's `GpuFloatSupport`.
fn is_native(name: &str) -> bool {
    matches!(
        name,
        "stablehlo.add"
            | "stablehlo.subtract"
            | "stablehlo.multiply"
            | "stablehlo.maximum"
            | "stablehlo.minimum"
            | "stablehlo.exponential"
            | "stablehlo.log"
    )
}

/// Cycles of the op `name` for one element of type `element`.
pub fn flops_of_element(name: &str, element: &str) -> f64 {
    let [f32s, f16s, f64s] = match name.strip_prefix("stablehlo.").unwrap_or(name) {
        "add" | "subtract" => [7.0, 7.0, 15.0],
        "atan2" => [431.0, 451.0, 930.0],
        "cbrt" => [178.0, 201.0, 586.0],
        "cosine" => [978.0, 997.0, 558.0],
        "sine" => [958.0, 993.0, 554.0],
        "divide" => [19.0, 43.0, 526.0],
        "exponential" => [79.0, 102.0, 376.0],
        "exponential_minus_one" => [190.0, 217.0, 712.0],
        "log" => [166.0, 182.0, 815.0],
        "log_plus_one" => [229.0, 245.0, 1259.0],
        "multiply" => [3.0, 7.0, 15.0],
        "power" => [510.0, 526.0, 2205.0],
        "rsqrt" => [75.0, 95.0, 277.0],
        "sqrt" => [75.0, 95.0, 332.0],
        "tanh" => [467.0, 502.0, 431.0],
        _ => [DEFAULT; 3],
    };
    match (element, name) {
        ("f32", _) => f32s,
        // Those that the chip has for no `bf16` are computed as `f32`.
        ("bf16", name) if !is_native(name) => f32s,
        ("f16", _) => f16s,
        ("f64", _) => f64s,
        ("i32", "stablehlo.divide") => 297.0,
        ("ui32", "stablehlo.divide") => 122.0,
        ("i32", "stablehlo.power") => 71.0,
        _ => DEFAULT,
    }
}
