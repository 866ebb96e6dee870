//! The channels of collectives of `StableHLO`.

use crate::index::OpId;
use crate::ir::Program;

/// The attribute that says the channel of a collective.
pub const CHANNEL: &str = "channel_handle";

/// The largest channel that an op of `ops` has.
pub fn last_channel(program: &Program, ops: impl Iterator<Item = OpId>) -> i64 {
    let mut last = 0;
    if program.strings().find(CHANNEL).is_none() {
        return last;
    }
    for op in ops {
        let Some(text) = program.attr(op, CHANNEL) else { continue };
        let handle = text.split("handle =").nth(1).and_then(|rest| {
            rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse::<i64>().ok()
        });
        last = last.max(handle.unwrap_or(0));
    }
    last
}
