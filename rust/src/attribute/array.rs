//! The elements of `[a, b]` as text.

/// The elements of the array `text`; `None` if it is not an array. Only brackets and strings are
/// parsed.
pub fn split_array(text: &str) -> Option<Vec<&str>> {
    let inner = text.trim().strip_prefix('[')?;
    let bytes = inner.as_bytes();
    let (mut items, mut closers, mut start, mut at) = (Vec::new(), Vec::new(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at)?,
            b'<' => closers.push(b'>'),
            b'(' => closers.push(b')'),
            b'[' => closers.push(b']'),
            b'{' => closers.push(b'}'),
            b'-' if bytes.get(at + 1) == Some(&b'>') => at += 1,
            b',' | b']' if closers.is_empty() => {
                let item = inner[start..at].trim();
                if !item.is_empty() {
                    items.push(item);
                } else if byte == b',' || !items.is_empty() {
                    return None;
                }
                start = at + 1;
                if byte == b']' {
                    return inner[start..].trim().is_empty().then_some(items);
                }
            }
            b'>' | b')' | b']' | b'}' if closers.pop() != Some(byte) => return None,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The index of the quote that ends the string starting at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> Option<usize> {
    at += 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::split_array;

    #[test]
    fn arrays_split_at_their_own_commas() {
        let split = |text: &'static str| split_array(text);
        assert_eq!(split("[]"), Some(vec![]));
        assert_eq!(
            split(r#" [{a = "]"}, #x<[1, 2] -> 3>] "#),
            Some(vec![r#"{a = "]"}"#, "#x<[1, 2] -> 3>"])
        );
        for bad in ["", "64", "[", "[a", "[a,]", "[,]", "[a] b", "[a)]", "[\"a]"] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }
}
