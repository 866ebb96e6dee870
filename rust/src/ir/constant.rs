//! The values of constants, as text that can be compared.

use super::Program;
use crate::index::OpId;
use rustc_hash::FxHasher;
use std::borrow::Cow;
use std::hash::{Hash, Hasher};

impl Program {
    /// The value of `op`, a constant, without its type: `dense<[1, 2]>`. A splat number is written in
    /// one way, however it is written in the program; longer values are compared as they are written.
    pub fn constant_value(&self, op: OpId) -> Cow<'_, str> {
        let row = &self.ops[op];
        let attr = self.op_attrs(op).iter().find(|attr| self.strings.get(attr.name) == "value");
        let text = match attr {
            Some(attr) => self.text.get(attr.value),
            None => {
                let mut text = &self.text.get(row.span)[(row.dict.end - row.span.start) as usize..];
                if !row.loc.is_empty() && row.loc.end <= row.span.end {
                    text = &text[..(row.loc.start.max(row.dict.end) - row.dict.end) as usize];
                    text = text.trim_end().strip_suffix('(').unwrap_or(text);
                    text = text.trim_end().strip_suffix("loc").unwrap_or(text);
                }
                text
            }
        };
        let value = text.rsplit_once(':').map_or(text, |(value, _)| value).trim();
        splat(value).map_or(Cow::Borrowed(value), Cow::Owned)
    }
    /// A hash of the value of `op`.
    pub fn constant_hash(&self, op: OpId) -> u64 {
        let mut hasher = FxHasher::default();
        self.constant_value(op).hash(&mut hasher);
        hasher.finish()
    }
}

/// `dense<1.0>` as `dense<1e0>`: a number with a point or an exponent in the shortest form.
fn splat(value: &str) -> Option<String> {
    let inner = value.strip_prefix("dense<")?.strip_suffix('>')?.trim();
    let is_float = inner.len() < 40 && inner.contains(['.', 'e', 'E']) && !inner.contains('x');
    let number: f64 = inner.parse().ok().filter(|_| is_float)?;
    Some(format!("dense<{number:e}>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splats_are_written_in_one_way() {
        assert_eq!(splat("dense<1.0>"), splat("dense<1.000000e+00>"));
        assert_ne!(splat("dense<1.0>"), splat("dense<-1.0>"));
        assert_eq!(splat("dense<1>"), None);
        assert_eq!(splat("dense<0x7FC00000>"), None);
    }
}
