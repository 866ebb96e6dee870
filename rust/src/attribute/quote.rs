//! Names as MLIR prints them: strings, keys of dictionaries, symbols.

use super::cursor::bare_len;

/// Appends `text` as MLIR prints a string: printable ASCII as it is, everything else as `\XX`.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' if byte != b'"' => out.push(char::from(byte)),
            _ => {
                out.push('\\');
                for digit in [byte >> 4, byte & 15] {
                    out.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
                }
            }
        }
    }
    out.push('"');
}

/// Appends `name` as MLIR prints a key of a dictionary.
pub fn write_key(out: &mut String, name: &str) {
    if !name.is_empty() && bare_len(name) == name.len() {
        out.push_str(name);
    } else {
        write_string(out, name);
    }
}

/// Appends `name` as MLIR prints a symbol reference.
pub fn write_symbol(out: &mut String, name: &str) {
    out.push('@');
    write_key(out, name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_print_bare_where_they_can() {
        let mut out = String::new();
        write_symbol(&mut out, "a_1.$");
        write_symbol(&mut out, "1 b");
        write_key(&mut out, "");
        assert_eq!(out, "@a_1.$@\"1 b\"\"\"");
        let mut out = String::new();
        write_string(&mut out, "a\"\n\\☃~");
        assert_eq!(out, r#""a\22\0A\\\E2\98\83~""#);
    }
}
