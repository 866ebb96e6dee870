//! Attributes as text, the way MLIR prints them.

/// A signless integer of 64 bits: `3 : i64`.
pub fn int_attr(number: i64) -> String {
    format!("{number} : i64")
}

/// A dense array of integers of 64 bits: `array<i64: 1, 2>`.
pub fn int_array(numbers: &[i64]) -> String {
    if numbers.is_empty() {
        return "array<i64>".to_owned();
    }
    format!("array<i64: {}>", joined(numbers))
}

/// Numbers with commas in between: `1, 2`.
pub fn joined<N: ToString>(numbers: &[N]) -> String {
    let numbers: Vec<String> = numbers.iter().map(N::to_string).collect();
    numbers.join(", ")
}
