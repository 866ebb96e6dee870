//! The channel ids of `StableHLO` collectives.

use crate::index::OpId;
use crate::ir::Program;

/// The attribute with the channel of a collective.
pub const CHANNEL: &str = "channel_handle";

/// The largest channel id of `ops`; 0 if none has a channel.
pub fn last_channel(program: &Program, ops: impl Iterator<Item = OpId>) -> i64 {
    let Some(name) = program.strings().find(CHANNEL) else { return 0 };
    let ops = ops.filter(|&op| program.op_attrs(op).iter().any(|attr| attr.name == name));
    ops.map(|op| channel(program, op)).max().unwrap_or(0)
}

/// The channel of `op`; 0 if it has none.
pub fn channel(program: &Program, op: OpId) -> i64 {
    let number = program.attr(op, CHANNEL).and_then(|text| {
        let (start, end) = number_in(text)?;
        text[start..end].parse().ok()
    });
    number.unwrap_or(0)
}

/// Sets the channel id of `op`, which has a channel, to `number`.
pub fn set_channel(program: &mut Program, op: OpId, number: i64) {
    let Some(text) = program.attr(op, CHANNEL) else { return };
    let Some((start, end)) = number_in(text) else { return };
    let new = format!("{}{number}{}", &text[..start], &text[end..]);
    program.set_attr(op, CHANNEL, &new);
}

/// The range of the channel id in `text`, a channel handle.
fn number_in(text: &str) -> Option<(usize, usize)> {
    let (at, _) = text.match_indices('=').find(|&(at, _)| text[..at].ends_with("handle "))?;
    let (before, rest) = (&text[..=at], &text[at + 1..]);
    let digits = rest.trim_start();
    let start = before.len() + rest.len() - digits.len();
    let len = digits.find(|c: char| !c.is_ascii_digit())?;
    Some((start, start + len))
}
