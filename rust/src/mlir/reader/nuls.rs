//! NUL characters between tokens, which MLIR's lexer skips as it does white space.
//!
//! Such characters are rare, so the parser rejects them, and if a text fails to parse, it is parsed
//! again with a space for each of them. NULs in strings and comments are kept, and those in the
//! bodies of dialect attributes and types, where MLIR rejects them.

use memchr::memchr;

/// `text` with a space for each NUL between tokens; `None` if there is none.
pub(super) fn blanked(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    memchr(0, bytes)?;
    let mut blanked = String::with_capacity(text.len());
    let (mut kept, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            0 => {
                blanked.push_str(&text[kept..at]);
                blanked.push(' ');
                at += 1;
                kept = at;
            }
            b'"' => at = end_of_string(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'/') => at = end_of_line(bytes, at),
            b'#' | b'!' => at = end_of_body(bytes, at + 1),
            _ => at += 1,
        }
    }
    if blanked.is_empty() {
        return None;
    }
    blanked.push_str(&text[kept..]);
    Some(blanked)
}

fn end_of_line(bytes: &[u8], start: usize) -> usize {
    memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |len| start + len)
}

/// The end of the string that starts at `start`, or of its line.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\n' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of the name at `start`, including a body in angle brackets.
fn end_of_body(bytes: &[u8], start: usize) -> usize {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$.-".contains(byte);
    let mut at = start;
    while bytes.get(at).is_some_and(is_name) {
        at += 1;
    }
    if bytes.get(at) != Some(&b'<') {
        return at;
    }
    let mut depth = 0_usize;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            b'-' if bytes.get(at + 1) == Some(&b'>') => at += 1,
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_between_tokens_become_spaces() {
        assert_eq!(blanked("a\0%b").as_deref(), Some("a %b"));
        assert_eq!(blanked("\0é\0").as_deref(), Some(" é "));
        assert_eq!(
            blanked("[#a.b<\"x>\\\"\">,\0#c]\0").as_deref(),
            Some("[#a.b<\"x>\\\"\">, #c] ")
        );
    }
    #[test]
    fn others_stay() {
        for text in ["", "a", "\"a\0\"", "// a\0\nb", "#a.b<(\0)>", "!t<\0>", "#a<x -> \0>", "\"\\"]
        {
            assert_eq!(blanked(text), None, "{text}");
        }
    }
}
