//! The window of a convolution: `{stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]}`.

use super::cursor::AttrCursor;
use super::value::{AttrValue, Fields};

/// Parses a window to the attributes of the generic form. A comma may follow the last list.
pub fn window<'a>(cursor: &mut AttrCursor<'_, 'a>) -> Option<Fields<'a>> {
    let mut lists = Vec::new();
    cursor.expect("{")?;
    while !cursor.eat("}") {
        let word = cursor.word()?;
        cursor.expect("=")?;
        let name = match word {
            "stride" => "window_strides",
            "pad" => "padding",
            "lhs_dilate" => "lhs_dilation",
            "rhs_dilate" => "rhs_dilation",
            "reverse" => "window_reversal",
            _ => return None,
        };
        let value = if word == "pad" {
            AttrValue::Dense { elements: pairs(cursor)?, ty: "" }
        } else {
            match cursor.int_list(b'[', b']') {
                Some(ints) => AttrValue::Ints(ints),
                None => AttrValue::DenseArray(cursor.list("[", "]", number_or_bool)?),
            }
        };
        lists.push((name, value));
        cursor.eat(",");
    }
    Some(lists)
}

/// `[[0, 1], [2, 3]]`, flattened.
fn pairs<'a>(cursor: &mut AttrCursor<'_, 'a>) -> Option<Vec<AttrValue<'a>>> {
    let mut all = Vec::new();
    cursor.list("[", "]", |cursor| {
        let each = |cursor: &mut AttrCursor<'_, 'a>| {
            all.push(number_or_bool(cursor)?);
            Some(())
        };
        cursor.list("[", "]", each).map(drop)
    })?;
    Some(all)
}

/// An integer, `true` or `false`.
fn number_or_bool<'a>(cursor: &mut AttrCursor<'_, 'a>) -> Option<AttrValue<'a>> {
    match cursor.peek()? {
        b't' | b'f' => Some(AttrValue::Bool(cursor.word()? == "true")),
        _ => cursor.int().map(AttrValue::Int),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_in_any_order_with_a_comma_at_the_end_or_not() {
        for end in ["}", ",}"] {
            let text =
                format!("{{pad = [[0, -1], [2, 3]], reverse = [true, 0], stride = [4, 5]{end}");
            let lists = window(&mut AttrCursor::new(&text, &|_| None)).unwrap_or_default();
            let names: Vec<_> = lists.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, ["padding", "window_reversal", "window_strides"]);
            let ints: Vec<_> = lists.iter().map(|(_, list)| list.as_ints()).collect();
            assert_eq!(ints, [Some(vec![0, -1, 2, 3]), Some(vec![1, 0]), Some(vec![4, 5])]);
        }
    }
}
