//! Asynchronous copies between HBM and the vector memory of a core, which no kernel makes.
//!
//! XLA's cost analysis counts four times what it copies: that a copy starts with its operand, has a result that consists of both ends,
//! and is done with one of them. Copies to vector memory of a megabyte or more are made in four slices, of which it counts three times
//! the bytes: that each is done, and that they are one array then.

/// The least bytes that are copied to vector memory in slices.
const SLICED: u128 = 1 << 20;

/// The copies of a block, or of a program, each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncCopies {
    /// How many they are.
    pub count: u64,
    /// The bytes that they copy.
    pub bytes: u128,
    /// The bytes that XLA's cost analysis counts.
    pub accessed: u128,
}

impl AsyncCopies {
    /// Adds a copy of `bytes` to HBM.
    pub fn add_eviction(&mut self, bytes: u128) {
        *self = self.and(Self { count: 1, bytes, accessed: bytes.saturating_mul(4) });
    }
    /// Adds a copy of `bytes` to vector memory.
    pub fn add_prefetch(&mut self, bytes: u128) {
        let times = if bytes < SLICED { 4 } else { 3 };
        *self = self.and(Self { count: 1, bytes, accessed: bytes.saturating_mul(times) });
    }
    /// The number, the bytes, and the bytes that are counted.
    pub const fn figures(self) -> (u64, u128, u128) {
        (self.count, self.bytes, self.accessed)
    }
    /// These and `other`.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            bytes: self.bytes.saturating_add(other.bytes),
            accessed: self.accessed.saturating_add(other.accessed),
        }
    }
}
