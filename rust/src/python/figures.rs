//! `Figures`: the results of [`crate::cost`], from which `shardcore/costs` computes times. Rows
//! become Python objects when they are requested.

use super::axis::PyAxisRef;
use super::combined_collectives::{together, Combined};
use super::compiled::{compiler_named, Compiled};
use super::cost_rows::{axis_refs, Tables};
use super::host;
use super::mesh::PyMesh;
use super::module::PyModule;
use super::origin::{Origin, PyOrigin};
use super::partition::signed;
use super::room::room;
use super::work_rows::{work_row, WorkRow};
use crate::axis::AxisRef;
use crate::compilers::compilation::ChipFacts;
use crate::compilers::xla_cpu::buffer_assignment::lifetimes::Lifetimes;
use crate::cost::collectives::{Collective, CollectiveKind};
use crate::cost::kernels::Chip;
use crate::cost::local::Local;
use crate::cost::memory::Peak;
use crate::cost::timeline::timeline;
use crate::cost::times::{Computation, Times, Transfer};
use crate::cost::whole_ops::{whole_ops, WholeOp};
use crate::cost::{local_cost, local_host_bytes, local_once};
use crate::cost::{ProgramCost, WorkKind};
use crate::index::{Id, MeshId, SignatureId};
use crate::ir::Program;
use crate::work::ops::estimate::{Estimate, Estimates};
use crate::work::ops::Work;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::sync::Arc;

/// The most streams that collectives run on.
const MAX_STREAMS: usize = 16;

/// Bytes of memory that the figures of an op take.
const BYTES_PER_OP: usize = 1 << 11;

/// The cost of one run of the custom calls of a signature: the number of the signature, FLOPs,
/// transcendentals, bytes.
type GivenEstimate = (usize, u128, u128, Option<u128>);

/// A value in memory: name, bytes, the first and the last moment.
type LiveRange = (String, u128, u32, u32);

/// The properties that determine the time of a collective: kind, mesh, axes, number of devices,
/// bytes.
type TrafficKey<Axes = Vec<AxisRef>> = (CollectiveKind, MeshId, Option<Axes>, i64, u128);

fn traffic_key(row: &Collective) -> TrafficKey<&[AxisRef]> {
    (row.kind, row.mesh, row.axes.as_deref(), row.devices, row.bytes)
}

/// The distinct kinds of rows of a table.
struct Kinds<K> {
    keys: Vec<K>,
    /// The kind of each row of the table.
    of_rows: Vec<usize>,
}

impl<K: Clone + Eq + std::hash::Hash> Kinds<K> {
    fn of(rows: impl Iterator<Item = K>) -> Self {
        let mut places: FxHashMap<K, usize> = FxHashMap::default();
        let mut keys = Vec::new();
        let of_rows = rows.map(|key| {
            *places.entry(key).or_insert_with_key(|key| {
                keys.push(key.clone());
                keys.len() - 1
            })
        });
        let of_rows = of_rows.collect();
        Self { keys, of_rows }
    }
    /// For each kind the sum of the `counts` of its rows.
    fn sums<const N: usize>(&self, counts: impl Iterator<Item = [u128; N]>) -> Vec<[u128; N]> {
        let mut sums = vec![[0_u128; N]; self.keys.len()];
        for (&kind, counts) in self.of_rows.iter().zip(counts) {
            for (sum, count) in sums[kind].iter_mut().zip(counts) {
                *sum = sum.saturating_add(count);
            }
        }
        sums
    }
}

/// The figures of a per-device program.
#[pyclass(name = "Figures", module = "shardcore", frozen)]
pub struct PyFigures {
    program: Arc<Program>,
    origin: Arc<Origin>,
    source: Arc<Program>,
    estimates: Estimates,
    cost: ProgramCost,
    compiled: Compiled,
    work: Kinds<WorkKind>,
    traffic: Kinds<TrafficKey>,
}

impl PyFigures {
    /// The figures of `program`, which was made from `source`, the program of `origin`.
    fn of(
        program: Arc<Program>,
        (origin, source): (Arc<Origin>, Arc<Program>),
        estimates: Estimates,
        chip: Chip,
    ) -> Self {
        let cost = local_cost(origin.local(&program, &source), &estimates, chip);
        let of_rows = cost.ops.iter().map(|row| row.kind as usize).collect();
        let work = Kinds { keys: cost.kinds.clone(), of_rows };
        let collectives = cost.collectives.iter();
        let Kinds { keys, of_rows } = Kinds::of(collectives.map(traffic_key));
        let keys = keys.into_iter().map(|(kind, mesh, axes, devices, bytes)| {
            (kind, mesh, axes.map(<[AxisRef]>::to_vec), devices, bytes)
        });
        let traffic = Kinds { keys: keys.collect(), of_rows };
        let compiled = Compiled::new(chip.1);
        Self { program, origin, source, estimates, cost, compiled, work, traffic }
    }
    /// The per-device program with its source.
    fn local(&self) -> Local<'_> {
        self.origin.local(&self.program, &self.source)
    }
    /// The peak of memory use, of the device or of its host.
    fn peak(&self, py: Python<'_>, compiler: &str, on_host: bool) -> &Peak {
        py.detach(|| self.compiled.peak((self.local(), &self.cost), compiler, on_host))
    }
    /// The live ranges of the buffers of the device.
    fn lifetimes_of(&self, py: Python<'_>, compiler: &str) -> Lifetimes {
        py.detach(|| self.compiled.lifetimes((self.local(), &self.cost), compiler))
    }
    fn tables<'a, 'py>(&'a self, py: Python<'py>) -> Tables<'a, 'py> {
        Tables::new(py, &self.origin, &self.source, &self.program)
    }
}

/// The figures of `module`, a per-device program that was made from `origin`. For `chip` see [`ChipFacts`].
#[pyfunction]
pub(super) fn program_figures(
    py: Python<'_>,
    module: &Bound<'_, PyModule>,
    origin: &Bound<'_, PyOrigin>,
    estimates: Vec<GivenEstimate>,
    compiler: &str,
    chip: (u128, bool, Option<u128>, (u64, u64, u64), Option<u128>, i64),
) -> PyResult<PyFigures> {
    let program = signed(py, module.get())?;
    let origin = Arc::clone(&origin.get().0);
    let source = origin.source(py)?;
    room(py, program.num_op_ids().saturating_mul(BYTES_PER_OP), "counting the program")?;
    let given = estimates.into_iter().map(|(id, flops, transcendentals, bytes)| {
        let work = Work { transcendentals, ..Work::of_flops(flops) };
        (SignatureId::from_index(id), Estimate { work, bytes })
    });
    let estimates: Estimates = given.collect();
    let (fast_bytes, fast_results, overlapped_bytes, rates, combined_bytes, lanes) = chip;
    let (flops_per_second, bytes_per_second, link_bytes_per_second) = rates;
    let facts = ChipFacts {
        fast_bytes,
        fast_results,
        overlapped_bytes,
        flops_per_second,
        bytes_per_second,
        link_bytes_per_second,
        combined_bytes,
        lanes,
    };
    let chip = (compiler_named(compiler), facts);
    Ok(py.detach(|| PyFigures::of(program, (origin, source), estimates, chip)))
}

#[pymethods]
impl PyFigures {
    /// Bytes of arguments, outputs, and donated outputs, in the memory of the device or of its
    /// host.
    fn memory(&self, on_host: bool) -> [u128; 3] {
        let memory = if on_host { &self.cost.host.memory } else { &self.cost.memory };
        [memory.argument_bytes, memory.output_bytes, memory.alias_bytes]
    }
    /// The peak of live bytes and holes, in the memory of the device or of its host.
    fn peak_bytes(&self, py: Python<'_>, compiler: &str, on_host: bool) -> u128 {
        self.peak(py, compiler, on_host).bytes
    }
    /// The part of the peak of the device that is between buffers.
    fn hole_bytes(&self, py: Python<'_>, compiler: &str) -> u128 {
        self.peak(py, compiler, false).holes
    }
    /// The number of copies between HBM and vector memory, their bytes, and those that XLA's analysis counts, each once.
    fn async_copies(&self, py: Python<'_>, compiler: &str) -> (u64, u128, u128) {
        self.peak(py, compiler, false).copies.figures()
    }
    /// FLOPs and transcendentals that the host computes.
    fn host_work(&self) -> (u128, u128) {
        let work = self.cost.host.work;
        (work.flops, work.transcendentals)
    }
    /// The rows of copies between device and host memory.
    fn host_copies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.tables(py).list(self.cost.host.copies.iter(), Tables::host_copy)
    }
    /// The bytes that XLA's CPU compiler allocates for the program. Computed when first requested.
    fn host_bytes(&self, py: Python<'_>) -> u128 {
        py.detach(|| local_host_bytes(self.local()))
    }
    /// The peak of live bytes of the order that needs the least memory.
    fn least_peak(&self, py: Python<'_>, compiler: &str) -> u128 {
        py.detach(|| self.compiled.least_peak(self.local(), compiler))
    }
    /// The rows of kernels of a compiler, block by block.
    fn kernels<'py>(&self, py: Python<'py>, compiler: &str) -> PyResult<Bound<'py, PyList>> {
        let given = (self.local(), &self.estimates);
        let rows = py.detach(|| self.compiled.kernels(given, &self.cost.known, compiler));
        self.tables(py).list(rows.iter(), Tables::kernel)
    }
    /// The counts of XLA's cost analysis on CPUs, which counts ops once: the number of runs of each
    /// kind in `work()`, and the number of elements that are converted between `bf16` and `f32`.
    fn once(&self, py: Python<'_>) -> (Vec<u128>, u128) {
        let once = py.detach(|| local_once(self.local(), &self.cost));
        let runs = self.work.sums(once.runs.into_iter().map(|runs| [runs]));
        (runs.into_iter().map(|[runs]| runs).collect(), once.conversions)
    }
    #[getter]
    fn is_saturated(&self) -> bool {
        self.cost.is_saturated
    }
    /// The figures of each kind of op, and the number of runs of each; ops of one kind take the same
    /// time.
    fn work<'a, 'py>(&'a self, py: Python<'py>) -> PyResult<(Vec<WorkRow<'a, 'py>>, Vec<u128>)> {
        let counts = self.work.sums(self.cost.ops.iter().map(|row| [row.count]));
        let (program, sets) = (&self.program, &self.cost.kernels);
        let rows = self.work.keys.iter().map(|kind| work_row(py, program, sets, kind));
        Ok((rows.collect::<PyResult<_>>()?, counts.into_iter().map(|[count]| count).collect()))
    }
    /// For each kind of collective (those of one kind take the same time): kind, mesh, axes, group
    /// size, bytes, and the number of runs.
    #[allow(clippy::type_complexity)] // It is a list of tuples in Python.
    fn traffic(
        &self,
    ) -> Vec<(&'static str, Option<PyMesh>, Option<Vec<PyAxisRef>>, i64, u128, u128)> {
        let counts = self.cost.collectives.iter().map(|row| [row.count]);
        let keys = self.traffic.keys.iter().zip(self.traffic.sums(counts));
        let row = |((kind, id, axes, devices, bytes), [count]): (&TrafficKey, [u128; 1])| {
            let mesh = id.get().map(|id| &self.source.meshes()[id].mesh);
            let axes = mesh.zip(axes.as_ref()).map(|(mesh, axes)| axis_refs(axes, mesh));
            let mesh = mesh.map(|mesh| PyMesh::from_verified(mesh.clone()));
            (kind.as_str(), mesh, axes, *devices, *bytes, count)
        };
        keys.map(row).collect()
    }
    /// The rows of ops; `kind` is the index in `work()`.
    fn ops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.cost.ops.iter().zip(&self.work.of_rows);
        self.tables(py).list(rows, Tables::op)
    }
    /// The rows of collectives; `kind` is the index in `traffic()`.
    fn collectives<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.cost.collectives.iter().zip(&self.traffic.of_rows);
        self.tables(py).list(rows, Tables::collective)
    }
    /// The rows of steps, in the order of execution; `work` and `traffic` are the indices in
    /// `work()` and `traffic()`.
    fn steps<'py>(&self, py: Python<'py>, compiler: &str) -> PyResult<Bound<'py, PyList>> {
        let steps = py.detach(|| self.compiled.steps((self.local(), &self.estimates), compiler));
        let rows = steps.iter().map(|step| {
            let work = step.row.map(|row| self.work.of_rows[row as usize]);
            let traffic = step.collective.map(|row| self.traffic.of_rows[row as usize]);
            (step, work, traffic)
        });
        self.tables(py).list(rows, Tables::step)
    }
    /// The seconds of the program, and the exposed seconds of each row of collectives and of copies
    /// to and from the host.
    #[allow(clippy::needless_pass_by_value)] // Python makes the lists.
    fn timeline(
        &self,
        py: Python<'_>,
        work: Vec<f64>,
        traffic: Vec<(f64, usize, f64, bool, f64)>,
        of_rows: Vec<usize>,
        contention: f64,
        copies: Vec<f64>,
    ) -> PyResult<(f64, Vec<f64>, Vec<f64>)> {
        if work.len() != self.work.keys.len()
            || copies.len() != self.cost.host.copies.len()
            || of_rows.len() != self.cost.collectives.len()
            || of_rows.iter().any(|&place| place >= traffic.len())
        {
            return Err(PyValueError::new_err(
                "expected a time for each kind of ops, each collective and each copy",
            ));
        }
        let computation = |&kind: &usize| Computation {
            seconds: work[kind],
            is_product: self.work.keys[kind].unit.is_product(),
        };
        let transfer =
            |&(seconds, stream, chunks, in_products, slows): &(f64, usize, f64, bool, f64)| {
                Transfer { seconds, stream: stream.min(MAX_STREAMS), chunks, slows, in_products }
            };
        let computations: Vec<_> = self.work.of_rows.iter().map(computation).collect();
        let mut transfers: Vec<_> =
            of_rows.iter().map(|&place| transfer(&traffic[place])).collect();
        let num_collectives = transfers.len() as u32;
        host::add(&mut transfers, &self.cost.host, &copies);
        let num_streams = transfers.iter().map(|row| row.stream).max().unwrap_or(0) + 1;
        let (computations, transfers) = (&*computations, &*transfers);
        let pipelines_copies = self.cost.compiler.pipelines_host_copies();
        let times = Times {
            computations,
            transfers,
            num_collectives,
            num_streams,
            pipelines_copies,
            contention,
        };
        let mut found = py.detach(|| timeline(&self.cost.flow, &times));
        let of_groups = found.exposed.split_off(num_collectives as usize);
        let (exposed, rest) = host::exposed(&self.cost, &copies, &of_groups);
        Ok((found.seconds + rest, found.exposed, exposed))
    }
    /// The sets of combined collectives, and for each row of collectives the index of its kind, or of
    /// its kind in a set.
    fn combined(&self, py: Python<'_>, most: HashMap<String, u128>) -> (Vec<Combined>, Vec<usize>) {
        let (kinds, of_rows) = (self.traffic.keys.len(), &self.traffic.of_rows);
        py.detach(|| together(&self.program, &self.cost, &most, (kinds, of_rows)))
    }
    /// For each op that is a matrix product, the FLOPs of the op of the source that it is a part of,
    /// and the number of devices that compute that op together.
    fn whole_ops(&self, num_devices: u64) -> Vec<Option<WholeOp>> {
        let local = self.origin.local(&self.program, &self.source);
        whole_ops(local, &self.cost.ops, num_devices.into())
    }
    /// The name stacks of the ops, and of the ops that required the collectives, by row.
    fn name_stacks(&self, py: Python<'_>) -> (Vec<String>, Vec<String>) {
        let tables = self.tables(py);
        let required = |row: &Collective| row.cause.map_or(row.loc, |_| row.cause_loc);
        let ops = tables.name_stacks(self.cost.ops.iter().map(|row| row.loc));
        (ops, tables.name_stacks(self.cost.collectives.iter().map(required)))
    }
    /// The rows of ops that are not counted.
    fn uncounted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.tables(py).list(self.cost.uncounted.iter(), Tables::uncounted)
    }
    /// The rows of loops.
    fn loops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.tables(py).list(self.cost.loops.iter(), Tables::carried_loop)
    }
    /// The rows of values that are live at the peak, in the memory of the device or of its host.
    fn live_at_peak<'py>(
        &self,
        py: Python<'py>,
        compiler: &str,
        on_host: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        self.tables(py).list(self.peak(py, compiler, on_host).live.iter(), Tables::live)
    }
    /// The ops that run at each moment, and the values in memory, with the first and the last
    /// moment of each. Computed when first requested.
    #[allow(clippy::type_complexity)] // It is a tuple in Python.
    fn lifetimes<'py>(
        &self,
        py: Python<'py>,
        compiler: &str,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let found = self.lifetimes_of(py, compiler);
        let tables = self.tables(py);
        let stacks = tables.name_stacks(found.moments.iter().map(|&(_, loc)| loc));
        let moments = tables.list(found.moments.iter().zip(stacks), Tables::moment)?;
        let tables = self.tables(py);
        let stacks = tables.name_stacks(found.values.iter().map(|row| row.loc));
        let values = tables.list(found.values.iter().zip(stacks), Tables::lifetime)?;
        Ok((moments, values))
    }
    /// The live ranges by names alone: the first result of the op at each moment; the name and bytes
    /// of each value, and its first and last moment. Computed when first requested.
    fn live_ranges(&self, py: Python<'_>, compiler: &str) -> (Vec<Option<String>>, Vec<LiveRange>) {
        let found = self.lifetimes_of(py, compiler);
        let tables = self.tables(py);
        let moments = found.moments.iter().map(|&(op, _)| tables.op_value_name(op));
        let values = found
            .values
            .iter()
            .map(|row| (tables.value_name(row.live.value), row.live.bytes, row.span.0, row.span.1));
        (moments.collect(), values.collect())
    }
    /// The row of the op at which most bytes are live; `None` if there is none.
    fn peak_op<'py>(
        &self,
        py: Python<'py>,
        compiler: &str,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let peak = self.peak(py, compiler, false);
        let mut tables = self.tables(py);
        peak.op.map(|op| tables.peak_op(op, peak.loc)).transpose()
    }
}
