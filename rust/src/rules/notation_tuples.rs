//! Rules whose tensors are in parentheses, as einsums are often written:
//! `"(i, k), (k, j) -> (i, j)"`.
//!
//! Dims are separated by commas. A dim with several factors has its own parentheses, `((i j), k)`,
//! where letters need no spaces, `((ij), k)`, as in the rules that `sdy` prints. Sizes may follow a
//! colon: `: i=2, j=4, k=32`.

/// `text` converted to short notation, `"i k, k j -> i j"`, if its tensors are in parentheses and
/// at least one has a comma or parentheses inside; otherwise `None`, since a text like
/// `"(i j) -> i j"` is in short notation already.
pub(super) fn short(text: &str) -> Option<String> {
    let (operands, rest) = text.split_once("->")?;
    let end = rest.rfind(')')? + 1;
    let (results, options) = rest.split_at(end);
    let sides = [tensors(operands)?, tensors(results)?];
    if !sides.iter().flatten().any(|tensor| tensor.contains([',', '('])) {
        return None;
    }
    let [operands, results] = sides.map(|side| {
        let side: Option<Vec<String>> = side.into_iter().map(dims).collect();
        side.map(|tensors| tensors.join(", "))
    });
    let options = match options.trim_start().strip_prefix(':') {
        Some(sizes) => format!("{{{}}}", sizes.trim()),
        None => options.trim_start().to_owned(),
    };
    // The comma distinguishes the options from a scalar at the end.
    let options = if options.is_empty() { options } else { format!(", {options}") };
    Some(format!("{} -> {}{options}", operands?, results?))
}

/// The contents of the parentheses of one side; `None` if anything but commas is outside of them.
fn tensors(side: &str) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, letter) in side.char_indices() {
        match letter {
            '(' => {
                depth += 1;
                if depth == 1 {
                    start = at + 1;
                }
            }
            ')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    found.push(&side[start..at]);
                }
            }
            ',' | ' ' => {}
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    (depth == 0 && !found.is_empty()).then_some(found)
}

/// The dims of a tensor, `"(ij), k"`, in short notation: `"(i j) k"`.
fn dims(tensor: &str) -> Option<String> {
    let mut found = Vec::new();
    for dim in tensor.split(',').map(str::trim).filter(|dim| !dim.is_empty()) {
        match dim.strip_prefix('(') {
            None => found.push(dim.to_owned()),
            Some(inside) => {
                let inside = inside.strip_suffix(')')?.trim();
                let is_letters = inside.chars().all(|letter| letter.is_ascii_lowercase());
                let factors: Vec<String> = if is_letters {
                    inside.chars().map(String::from).collect()
                } else {
                    inside.split_whitespace().map(str::to_owned).collect()
                };
                found.push(format!("({})", factors.join(" ")));
            }
        }
    }
    Some(found.join(" "))
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn tuples_become_short_notation() {
        for (text, expected) in [
            ("(i, k), (k, j) -> (i, j)", Some("i k, k j -> i j")),
            ("(i,j,k) -> ((ij), k) : i=2, j=4, k=32", Some("i j k -> (i j) k, {i=2, j=4, k=32}")),
            ("((batch seq), k), () -> (batch, seq, k)", Some("(batch seq) k,  -> batch seq k")),
            ("(i, k) -> (i) reduction={k}", Some("i k -> i, reduction={k}")),
            ("(i, k) -> (i), ()", Some("i k -> i, ")),
            ("(i j) -> i j", None),
            ("(i j) -> (i) {i=2}", None),
            ("i k, k j -> i j", None),
            ("(i, k (k, j) -> (i, j)", None),
            ("(i, k)) -> (i)", None),
            ("((i, k) -> (i)", None),
            ("i, k", None),
        ] {
            assert_eq!(short(text).as_deref(), expected, "{text}");
        }
    }
}
