//! Decodes escape sequences in MLIR strings, `\n` and `\22`.

use std::borrow::Cow;

/// The string that `body`, the text between quotes, denotes.
pub(in crate::mlir) fn unescaped(body: &str) -> Cow<'_, str> {
    if body.contains('\\') {
        unescape(body).into()
    } else {
        body.into()
    }
}

/// Resolves `\\`, `\"`, ` `, `\t` and two hex digits; bytes that are not UTF-8 are replaced.
fn unescape(body: &str) -> String {
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let hex = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match (tail.first(), hex.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (Some(b'n'), _) => bytes.push(b'\n'),
            (Some(b't'), _) => bytes.push(b'\t'),
            (Some(_), Some(value)) => {
                bytes.push(value);
                rest = &tail[1..];
            }
            (Some(&other), None) => bytes.push(other),
            (None, _) => {}
        }
        rest = rest.get(1..).unwrap_or(&[]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
