//! Decomposes all-reduces and reduce-scatters with a reducer that XLA's runtimes do not support into an all-to-all, local
//! reductions and an all-gather. They send as many bytes as the collective.

use super::collectives::Collectives;
use super::digits::{total_size, Digit};
use super::emit::{int_array, zero, Emitter};
use super::reducer::Reducer;
use crate::index::ValueId;
use crate::layout::ceil_div;

impl Collectives {
    /// An all-reduce: a reduce-scatter of the flattened tensor, and an all-gather; for few elements an all-gather of the partial
    /// results.
    pub(super) fn decomposed_all_reduce(
        &mut self,
        emit: &mut Emitter<'_>,
        input: ValueId,
        reducer: Reducer,
        devices: (u32, &[Digit]),
    ) -> ValueId {
        let (count, shape) = (total_size(devices.1), emit.shape(input));
        let size: i64 = shape.iter().product();
        let part = ceil_div(size, count);
        if size <= 2 * part {
            let rows = [&[1], &shape[..]].concat();
            let row = emit.reshape(input, &rows);
            let rows = self.all_gather(emit, row, 0, devices);
            return reduced(emit, rows, 0, reducer);
        }
        let row = emit.reshape(input, &[size]);
        let row = emit.pad(row, None, &[0], &[count * part - size]);
        let part = self.decomposed_reduce_scatter(emit, row, (0, reducer), devices);
        let all = self.all_gather(emit, part, 0, devices);
        let all = emit.slice(all, &[0], &[size]);
        emit.reshape(all, &shape)
    }
    /// A reduce-scatter along `dim`: an all-to-all, and a local reduction of the received parts.
    pub(super) fn decomposed_reduce_scatter(
        &mut self,
        emit: &mut Emitter<'_>,
        input: ValueId,
        (dim, reducer): (usize, Reducer),
        devices: (u32, &[Digit]),
    ) -> ValueId {
        let count = total_size(devices.1);
        let mut parts = emit.shape(input);
        parts[dim] /= count;
        parts.insert(dim, count);
        let parts = emit.reshape(input, &parts);
        let terms = self.all_to_all(emit, parts, (dim, dim), devices);
        reduced(emit, terms, dim, reducer)
    }
}

/// `value` reduced along `dim`.
fn reduced(emit: &mut Emitter<'_>, value: ValueId, dim: usize, reducer: Reducer) -> ValueId {
    let like = emit.type_of(value);
    let element = emit.element(like);
    let identity = reducer.identity(element).unwrap_or_else(|| zero(element).to_owned());
    let initial = emit.scalar(&identity, like);
    let mut shape = emit.shape(value);
    shape.remove(dim);
    let ty = emit.like(&shape, like);
    let attrs = [("dimensions", int_array(&[dim as i64]))];
    let op = emit.op_with_results("stablehlo.reduce", &[value, initial], &[ty], &attrs);
    reducer.add_body(emit, op, like);
    emit.program.result(op, 0)
}
