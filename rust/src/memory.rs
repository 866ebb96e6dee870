//! Checks that memory is available before large allocations, if the address space of the process is
//! limited.
//!
//! An allocation that fails aborts the process. If the address space is limited (`ulimit -v`), work
//! that may take much memory first tries to allocate as much, and fails with an error if it cannot.

use crate::error::{Code, Diagnostic, Error, Result};

/// Allocations of fewer bytes are not checked.
const SMALL: usize = 1 << 22;

/// Bytes that have to stay free for small allocations, which are not checked.
const LEFT: usize = 1 << 24;

/// Fails if `bytes`, which `what` may take, cannot be allocated. Always succeeds if the address
/// space is not limited.
pub fn ensure(bytes: usize, what: &str) -> Result<()> {
    match needed(bytes) {
        Some(needed) if !is_available(needed) => Err(shortage(bytes, what)),
        _ => Ok(()),
    }
}

/// The bytes that have to be available for work that takes `bytes`; `None` if this is not checked.
pub fn needed(bytes: usize) -> Option<usize> {
    (bytes >= SMALL && is_limited()).then(|| bytes.saturating_add(LEFT))
}

/// The error that `bytes`, which `what` may take, cannot be allocated.
pub fn shortage(bytes: usize, what: &str) -> Error {
    let needed = bytes >> 20;
    let message = format!("{what} may take {needed} MiB, which the process cannot allocate");
    let hint = "raise the limit of its address space (`ulimit -v`), or free memory";
    Diagnostic::new(Code::ProgramTooLarge, message).with_hint(hint).into()
}

/// Fails if there may not be enough memory to run passes on a copy of a program of `num_ops` ops.
pub fn ensure_for_program(num_ops: usize) -> Result<()> {
    /// Bytes for each op: in the copy, the propagation plan, the queue and other tables.
    const BYTES_PER_OP: usize = 1 << 9;
    ensure(num_ops.saturating_mul(BYTES_PER_OP), "running the passes")
}

/// Fails if there may not be enough memory to parse `text`, an attribute or a pipeline.
pub fn ensure_for_text(text: &str) -> Result<()> {
    /// An item of a list takes up to about 700 bytes, with errors about it, and may have as few as
    /// three bytes of text.
    const BYTES_PER_BYTE: usize = 256;
    ensure(text.len().saturating_mul(BYTES_PER_BYTE), "parsing the text")
}

fn is_available(bytes: usize) -> bool {
    let mut room: Vec<u8> = Vec::new();
    let is_there = room.try_reserve_exact(bytes).is_ok();
    // Without this, the allocation may be optimized out.
    std::hint::black_box(&room);
    is_there
}

/// Whether `/proc/self/limits` says that the address space of the process is limited.
fn is_limited() -> bool {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let mut lines = limits.lines();
    let limit = lines.find_map(|line| line.strip_prefix("Max address space"));
    limit.and_then(|limit| limit.split_whitespace().next()).is_some_and(|soft| soft != "unlimited")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_for_any_process_is_not_available() {
        assert!(is_available(1));
        assert!(!is_available(isize::MAX as usize));
        assert!(ensure(0, "nothing").is_ok());
    }
}
