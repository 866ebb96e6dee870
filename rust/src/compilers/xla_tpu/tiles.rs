//! Tiles: arrays in the memory of a TPU consist of tiles of 8 rows of 128 elements, to whose size their two minor dims are padded.
//!
//! The two minor dims are those that need least padding, by default the last two. Where the second has four rows or fewer, tiles have as
//! many. Elements of fewer than 32 bits are packed along the rows. Arrays of one dim have tiles of up to 1024 elements, scalars take 512
//! bytes. Source: the layouts of entry computations that XLA compiled for TPU v5e, as `{1,0:T(8,128)(2,1)}`.

use crate::compilers::target::Compiler;
use crate::index::ValueId;
use crate::work::tensors::{LocalTensor, Tensors, MAX_COUNTED};

/// Elements of a row of a tile, and rows of a whole one.
const LANES: u128 = 128;
const SUBLANES: u128 = 8;
/// The most elements of a tile of an array of one dim.
const MAX_FLAT: u128 = LANES * SUBLANES;
/// The bytes of a register's row: the least that an array takes.
const ROW_BYTES: u128 = 512;

/// The bytes that `value` takes in memory, as `compiler` lays it out.
pub fn stored_bytes(tensors: &mut Tensors<'_>, value: ValueId, compiler: Compiler) -> u128 {
    let tensor = tensors.of(value);
    if compiler.has_tiles() {
        *tensor.in_tiles.get_or_init(|| tiled_bytes(tensor, tensor))
    } else {
        tensor.bytes
    }
}

/// `tensor`, of `f32`, as `bf16`.
pub fn narrowed(tensor: &LocalTensor) -> LocalTensor {
    LocalTensor { bytes: tensor.bytes.div_ceil(2), ..tensor.clone() }
}

/// The bytes in tiles of `tensor`, of several dims, with that of `minor` as minor dim and second one that needs least padding.
pub(super) fn least_padded_bytes(tensor: &LocalTensor, minor: [(usize, usize); 2]) -> u128 {
    let Some(dims) = tensor.dims.as_deref().filter(|_| tensor.bytes > 0) else {
        return tensor.bytes;
    };
    let element = tensor.bytes.div_ceil(tensor.elements);
    let [one, other] = minor.map(|minor| padded(dims, minor, element));
    one.min(other).saturating_mul(element).clamp(ROW_BYTES, MAX_COUNTED)
}

/// The bytes of `tensor` in tiles, with the minor dims that need least padding in `whole`, of as many dims.
pub fn tiled_bytes(tensor: &LocalTensor, whole: &LocalTensor) -> u128 {
    let Some(dims) = tensor.dims.as_deref().filter(|_| tensor.bytes > 0) else {
        return tensor.bytes;
    };
    let element = tensor.bytes.div_ceil(tensor.elements);
    let elements = match dims {
        [] => return ROW_BYTES,
        &[size] => flat(extent(size), element),
        _ => {
            let whole = whole.dims.as_deref().filter(|whole| whole.len() == dims.len());
            padded(dims, minor_dims(whole.unwrap_or(dims), element), element)
        }
    };
    elements.saturating_mul(element).clamp(ROW_BYTES, MAX_COUNTED)
}

/// A size as an unsigned number; sizes of tensors that have bytes are positive.
fn extent(size: i64) -> u128 {
    u128::from(size.unsigned_abs())
}

/// The elements of an array of one dim, padded.
fn flat(size: u128, element: u128) -> u128 {
    let least = (ROW_BYTES / element).clamp(1, MAX_FLAT);
    size.next_multiple_of(size.next_power_of_two().clamp(least, MAX_FLAT))
}

/// Sizes of a minor dim, and of the second one, padded.
fn lanes(size: u128) -> u128 {
    size.next_multiple_of(LANES)
}
fn sublanes(size: u128, element: u128) -> u128 {
    size.next_multiple_of(rows_of_tile(size, element))
}

/// The elements of an array of several dims, padded, of which the minor one and the second one are given.
fn padded(dims: &[i64], (minor, second): (usize, usize), element: u128) -> u128 {
    let all = dims.iter().fold(1, |product: u128, &size| product.saturating_mul(extent(size)));
    let (minor, second) = (extent(dims[minor]), extent(dims[second]));
    let outer = all / minor.saturating_mul(second);
    outer.saturating_mul(lanes(minor)).saturating_mul(sublanes(second, element))
}

/// The minor dim and the second one of an array of several dims that need least padding; of equal ones the last two.
fn minor_dims(dims: &[i64], element: u128) -> (usize, usize) {
    let last = (dims.len() - 1, dims.len() - 2);
    let minors = least_padded(dims, lanes);
    let seconds = least_padded(dims, |size| sublanes(size, element));
    let pairs = minors.into_iter().flat_map(|minor| seconds.map(|second| (minor, second)));
    let apart = pairs.filter(|(minor, second)| minor != second);
    let best = apart.min_by_key(|&pair| padded(dims, pair, element)).unwrap_or(last);
    if padded(dims, last, element) <= padded(dims, best, element) {
        last
    } else {
        best
    }
}

/// The two of `dims`, of which there are several, that `padded` adds the smallest share to. The padding of the minor dim does not depend
/// on which dim is the second, so that no other dims are better.
fn least_padded(dims: &[i64], padded: impl Fn(u128) -> u128) -> [usize; 2] {
    let is_less = |one: usize, other: usize| {
        let (one, other) = (extent(dims[one]), extent(dims[other]));
        padded(one) * other < padded(other) * one
    };
    let mut least = if is_less(1, 0) { [1, 0] } else { [0, 1] };
    for dim in 2..dims.len() {
        if is_less(dim, least[0]) {
            least = [dim, least[0]];
        } else if is_less(dim, least[1]) {
            least[1] = dim;
        }
    }
    least
}

/// The rows of a tile of an array whose second minor dim is `size`: as few as hold it and fill the packed rows.
fn rows_of_tile(size: u128, element: u128) -> u128 {
    let packed = (4 / element.clamp(1, 4)).max(1);
    size.next_power_of_two().clamp(packed, SUBLANES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dims: &[i64], element: u128) -> LocalTensor {
        let elements = dims.iter().map(|&size| extent(size)).product();
        let dims = Some(dims.into());
        let bytes = elements * element;
        LocalTensor { dims, elements, bytes, ..LocalTensor::default() }
    }
    fn bytes(dims: &[i64], element: u128) -> u128 {
        let tensor = of(dims, element);
        tiled_bytes(&tensor, &tensor)
    }

    #[test]
    fn arrays_are_padded_to_whole_tiles() {
        assert_eq!(bytes(&[], 4), 512);
        assert_eq!(bytes(&[2], 2), 512);
        assert_eq!(bytes(&[384], 4), 2048);
        assert_eq!(bytes(&[1536], 4), 8192);
        assert_eq!(bytes(&[1024, 512], 4), 1024 * 512 * 4);
        assert_eq!(bytes(&[4, 512], 4), 4 * 512 * 4);
        assert_eq!(bytes(&[3, 512], 2), 4 * 512 * 2);
        assert_eq!(bytes(&[1, 256], 2), 2 * 256 * 2);
        assert_eq!(bytes(&[0, 256], 4), 0);
    }

    #[test]
    fn minor_dims_are_those_that_need_least_padding() {
        assert_eq!(bytes(&[128, 784], 4), 128 * 784 * 4);
        assert_eq!(bytes(&[512, 4, 64], 4), 512 * 4 * 64 * 4);
        assert_eq!(bytes(&[4, 4, 3, 8], 4), 4 * 3 * 4 * 128 * 4);
        assert_eq!(bytes(&[256, 100, 3, 64], 4), 3 * 100 * 64 * 256 * 4);
    }

    #[test]
    fn features_or_the_batch_of_a_convolution_are_minor() {
        let features_and_batch = [(3, 0), (0, 3)];
        let padded = |dims| least_padded_bytes(&of(dims, 4), features_and_batch);
        assert_eq!(bytes(&[8, 64, 64, 32], 4), 8 * 64 * 128 * 32 * 4);
        assert_eq!(padded(&[8, 64, 64, 32]), 8 * 64 * 64 * 128 * 4);
        assert_eq!(padded(&[128, 64, 64, 32]), 128 * 64 * 64 * 32 * 4);
    }

    #[test]
    fn the_layout_of_an_open_result_is_that_of_the_whole_array() {
        let tensor = |dims: [i64; 2]| LocalTensor {
            dims: Some(dims.into()),
            elements: extent(dims[0] * dims[1]),
            bytes: 4 * extent(dims[0] * dims[1]),
            ..LocalTensor::default()
        };
        let (part, whole) = (tensor([1024, 8000]), tensor([2048, 32000]));
        assert_eq!(tiled_bytes(&part, &part), 1024 * 8000 * 4);
        assert_eq!(tiled_bytes(&part, &whole), 1024 * 8064 * 4);
    }

    #[test]
    fn sizes_that_no_memory_has_do_not_overflow() {
        let dims = Some([i64::MAX; 6].into());
        let tensor = LocalTensor {
            dims,
            elements: MAX_COUNTED,
            bytes: MAX_COUNTED,
            ..LocalTensor::default()
        };
        assert_eq!(tiled_bytes(&tensor, &tensor), MAX_COUNTED);
    }
}
