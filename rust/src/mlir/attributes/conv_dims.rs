//! Convolution dimension numbers: `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
//!
//! Each list names the dims of the input, the kernel and the output in order: a number is a spatial
//! dim, a letter the batch, the feature, the input feature or the output feature.

use super::cursor::AttrCursor;
use super::value::AttrValue;

/// Parses one list: the position of each letter in `letters`, and of each spatial dim.
fn dims(
    cursor: &mut AttrCursor<'_, '_>,
    letters: [&str; 2],
) -> Option<([i64; 2], Vec<AttrValue<'static>>)> {
    let words = cursor.list("[", "]", |cursor| {
        // Unknown dims, `?`, take a position too.
        if cursor.eat("?") {
            Some("?")
        } else {
            cursor.word()
        }
    })?;
    let place = |word: &str| {
        let at = words.iter().position(|other| *other == word)?;
        i64::try_from(at).ok()
    };
    let is_dim = |word: &str, dim: usize| match word.as_bytes() {
        // As almost all are.
        [digit @ b'0'..=b'9'] => usize::from(digit - b'0') == dim,
        _ => dim > 9 && word == dim.to_string(),
    };
    let place_of = |dim: usize| words.iter().position(|word| is_dim(word, dim));
    let spatial = (0..words.len()).map_while(place_of);
    let spatial = spatial.map(|at| AttrValue::Int(at as i64)).collect();
    Some(([place(letters[0])?, place(letters[1])?], spatial))
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
        ("input_spatial_dimensions", AttrValue::Array(input_spatial)),
        ("kernel_input_feature_dimension", AttrValue::Int(kernel[0])),
        ("kernel_output_feature_dimension", AttrValue::Int(kernel[1])),
        ("kernel_spatial_dimensions", AttrValue::Array(kernel_spatial)),
        ("output_batch_dimension", AttrValue::Int(output[0])),
        ("output_feature_dimension", AttrValue::Int(output[1])),
        ("output_spatial_dimensions", AttrValue::Array(output_spatial)),
    ];
    Some(AttrValue::Struct { name: "stablehlo.conv".into(), fields })
}
