//! Convolution dimension numbers: `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
//!
//! Each list names the dims of the input, the kernel and the output in order: a number is a spatial
//! dim, a letter the batch, the feature, the input feature or the output feature.

use super::cursor::AttrCursor;
use super::value::AttrValue;
use crate::inline_list::InlineList;

/// Parses one list: the position of each letter in `letters`, and of each spatial dim.
fn dims(
    cursor: &mut AttrCursor<'_, '_>,
    letters: [&str; 2],
) -> Option<([i64; 2], InlineList<i64, 4>)> {
    let mut places = [None; 2];
    // Spatial dims, each with its position.
    let mut numbers: InlineList<(usize, i64), 4> = InlineList::new();
    let mut at = 0;
    cursor.list("[", "]", |cursor| {
        // Unknown dims, `?`, take a position too.
        if !cursor.eat("?") {
            let word = cursor.word()?;
            match letters.iter().position(|letter| *letter == word) {
                Some(letter) => places[letter] = places[letter].or(Some(at)),
                None => numbers.extend(word.parse().map(|dim| (dim, at))),
            }
        }
        at += 1;
        Some(())
    })?;
    numbers.sort_unstable();
    let in_order = numbers.iter().enumerate().map_while(|(index, &(dim, at))| {
        // Spatial dims are numbered from 0 without gaps.
        (dim == index).then_some(at)
    });
    Some(([places[0]?, places[1]?], in_order.collect()))
}

/// Parses dimension numbers to the structured attribute of the generic form.
pub fn conv_dims<'a>(cursor: &mut AttrCursor<'_, 'a>) -> Option<AttrValue<'a>> {
    let (input, input_spatial) = dims(cursor, ["b", "f"])?;
    cursor.eat("x").then_some(())?;
    let (kernel, kernel_spatial) = dims(cursor, ["i", "o"])?;
    cursor.eat("->").then_some(())?;
    let (output, output_spatial) = dims(cursor, ["b", "f"])?;
    let fields = vec![
        ("input_batch_dimension", AttrValue::Int(input[0])),
        ("input_feature_dimension", AttrValue::Int(input[1])),
        ("input_spatial_dimensions", AttrValue::Ints(input_spatial)),
        ("kernel_input_feature_dimension", AttrValue::Int(kernel[0])),
        ("kernel_output_feature_dimension", AttrValue::Int(kernel[1])),
        ("kernel_spatial_dimensions", AttrValue::Ints(kernel_spatial)),
        ("output_batch_dimension", AttrValue::Int(output[0])),
        ("output_feature_dimension", AttrValue::Int(output[1])),
        ("output_spatial_dimensions", AttrValue::Ints(output_spatial)),
    ];
    Some(AttrValue::Struct { name: "stablehlo.conv".into(), fields })
}
