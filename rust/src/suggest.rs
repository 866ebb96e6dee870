//! Suggests corrections of misspelt names.

/// Names longer than this are not compared: the distance is quadratic in their length.
const MAX_LEN: usize = 64;

/// The most candidates to compare with if there may be many mistakes: with thousands of names and
/// thousands of mistakes, comparing all pairs would take minutes.
pub const MAX_CANDIDATES: usize = 256;

/// The candidate nearest to `name`, if it is near enough to be suggested.
///
/// Near enough means at most a third of the name's letters away (but at least one), in single
/// insertions, deletions, substitutions and swaps of neighbours. The first of equals wins.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_LEN {
        return None;
    }
    let length = name.chars().count();
    let limit = (length / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate == name
            || candidate.len() > MAX_LEN
            || candidate.chars().count().abs_diff(length) > limit
        {
            continue;
        }
        let distance = edit_distance(name, candidate);
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// A hint for an unknown `name`: `did you mean "x"?`, else the list of candidates if it is short,
/// else nothing.
///
/// `quote` shows a candidate as the user has to write it.
pub fn hint<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
    quote: impl Fn(&str) -> String,
) -> Option<String> {
    /// More candidates than this are not worth listing.
    const MAX_LISTED: usize = 8;
    if let Some(candidate) = nearest(name, candidates.clone()) {
        return Some(format!("did you mean {}?", quote(candidate)));
    }
    let all: Vec<String> = candidates.into_iter().take(MAX_LISTED + 1).map(quote).collect();
    match all.len() {
        0 => None,
        1..=MAX_LISTED => Some(format!("there is {}", all.join(", "))),
        _ => Some(format!("there is {}, ...", all[..MAX_LISTED].join(", "))),
    }
}

/// The number of single edits that make `a` out of `b`, of at most `MAX_LEN` bytes each; a swap of
/// neighbours is one edit.
fn edit_distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before_last = [0; MAX_LEN + 1];
    let mut last = before_last;
    (0..=b.len()).for_each(|j| last[j] = j);
    let mut row = before_last;
    for i in 0..a.len() {
        row[0] = i + 1;
        for j in 0..b.len() {
            let substituted = last[j] + usize::from(a[i] != b[j]);
            let mut edits = substituted.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                edits = edits.min(before_last[j - 1] + 1);
            }
            row[j + 1] = edits;
        }
        (before_last, last, row) = (last, row, before_last);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest_name_and_lists_the_others() {
        assert_eq!(nearest("modle", ["data", "model", "mode"]), Some("model"));
        assert_eq!(nearest("y", ["x", "z"]), Some("x"));
        assert_eq!(nearest("batch", ["x", "model"]), None);
        let quote = |name: &str| format!("\"{name}\"");
        assert_eq!(hint("batch", ["x", "model"], quote).unwrap(), "there is \"x\", \"model\"");
        assert_eq!(hint("dtaa", ["data", "x"], quote).unwrap(), "did you mean \"data\"?");
        assert_eq!(hint("x", [], quote), None);
    }
}
