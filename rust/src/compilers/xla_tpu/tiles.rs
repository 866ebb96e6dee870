//! Tiles: arrays in the memory of a TPU consist of tiles of 8 rows of 128 elements, to whose size their two minor dims are padded.
//!
//! The two minor dims are those that need least padding, by default the last two. Where the second has four rows or fewer, tiles have as
//! many. Elements of fewer than 32 bits are packed along the rows. Arrays of one dim have tiles of up to 1024 elements, scalars take 512
//! bytes. Source: the layouts of entry computations that XLA compiled for TPU v5e, as `{1,0:T(8,128)(2,1)}`.

use crate::compilers::target::Compiler;
use crate::index::ValueId;
use crate::work::tensors::{LocalTensor, Tensors};

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
        tiled_bytes(tensor)
    } else {
        tensor.bytes
    }
}

/// The bytes of `tensor` in tiles.
fn tiled_bytes(tensor: &LocalTensor) -> u128 {
    let Some(dims) = tensor.dims.as_deref().filter(|_| tensor.bytes > 0) else {
        return tensor.bytes;
    };
    let element = tensor.bytes.div_ceil(tensor.elements);
    let elements = match dims {
        [] => return ROW_BYTES,
        &[size] => flat(extent(size), element),
        _ => in_rows(dims, element),
    };
    elements.saturating_mul(element).max(ROW_BYTES)
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

/// The elements of an array of several dims, padded, with the two minor dims that need least.
fn in_rows(dims: &[i64], element: u128) -> u128 {
    let all = dims.iter().fold(1, |product: u128, &size| product.saturating_mul(extent(size)));
    let padded = |minor: usize, second: usize| {
        let (minor, second) = (extent(dims[minor]), extent(dims[second]));
        let outer = all / (minor * second);
        let rows = second.next_multiple_of(rows_of_tile(second, element));
        outer.saturating_mul(minor.next_multiple_of(LANES)).saturating_mul(rows)
    };
    let places = 0..dims.len();
    let pairs = places.clone().flat_map(|minor| places.clone().map(move |second| (minor, second)));
    let apart = pairs.filter(|(minor, second)| minor != second);
    apart.map(|(minor, second)| padded(minor, second)).min().unwrap_or(all)
}

/// The rows of a tile of an array whose second minor dim is `size`: as few as hold it and fill the packed rows.
fn rows_of_tile(size: u128, element: u128) -> u128 {
    let packed = (4 / element.clamp(1, 4)).max(1);
    size.next_power_of_two().clamp(packed, SUBLANES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(dims: &[i64], element: u128) -> u128 {
        let elements = dims.iter().map(|&size| extent(size)).product();
        let dims = Some(dims.into());
        let bytes = elements * element;
        tiled_bytes(&LocalTensor { dims, elements, bytes, ..LocalTensor::default() })
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
    }
}
