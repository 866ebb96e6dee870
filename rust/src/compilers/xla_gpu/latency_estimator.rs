//! How long kernels and collectives take by the model from which XLA schedules them: a table of measured products and one of
//! measured collectives of eight H100, to which curves were fitted here, and memory traffic for other kernels.
//!
//! Source: XLA's `SolLatencyEstimator`, `MatmulInterpolator` and `CollectiveInterpolator`.

use crate::compilers::latency_hiding_scheduler::estimates::{Estimated, Rules};
use crate::compilers::xla_cpu::kernels::graph::{Graph, Kernel, NONE};
use crate::index::OpId;
use crate::ir::{OpKind, Program};
use crate::work::cached::{Outcome, Works};

/// Microseconds to start, or to await, a collective.
const START: f64 = 1.0;
/// Microseconds of what has no model: copies, loops, sorts; and of calls of libraries.
const UNKNOWN: f64 = 0.01;
const LIBRARY: f64 = 10.0;
/// Bytes per microsecond that kernels read and write.
const TRAFFIC: f64 = 3.35e6;
/// The bytes of the smallest collectives of the table; the throughput of smaller ones is that of these.
const SMALLEST: f64 = 1024.0;
/// The curve of products: flops per microsecond of long ones, and the flops of one that reaches half as many.
const PRODUCTS: (f64, f64) = (300e6, 3.2e9);
const BF16_PRODUCTS: (f64, f64) = (800e6, 5.6e9);
const EXPONENT: f64 = 0.9;
/// The least and largest sizes of rows, columns and contracted dims in the table, and of batch dims.
const SIZES: (f64, f64) = (256.0, 4096.0);
const BATCHES: (f64, f64) = (1.0, 4.0);

/// One collective runs at a time.
pub const RULES: Rules = Rules { between: 1.0, at_once: [1, 0] };

/// Estimates the kernels of a program.
pub struct Estimator<'p, 'w, 'a> {
    /// The program.
    pub program: &'p Program,
    /// The tensors and the work of its ops.
    pub works: &'w mut Works<'a>,
}

impl Estimator<'_, '_, '_> {
    /// The estimates of kernel `at` of `graph`.
    pub fn estimated(&mut self, graph: &Graph, at: u32) -> Estimated {
        let Kernel { op, is_op, is_name, built, micros, .. } = graph.kernels[at as usize];
        if is_name {
            return Estimated::default();
        }
        if built == NONE {
            return Estimated { cost: UNKNOWN, ..Estimated::default() };
        }
        let (read, made) = (bytes_read(graph, at), bytes_made(graph, at));
        let name = self.program.op_name(op);
        if !is_op {
            let cost = if micros > 0.0 { micros.into() } else { (read + made) / TRAFFIC };
            return Estimated { cost, ..Estimated::default() };
        }
        let latency = latency(name, read, made);
        if latency > 0.0 {
            return Estimated { cost: START, latency, ..Estimated::default() };
        }
        let cost = match name {
            "stablehlo.dot_general" | "stablehlo.dot" => self.product(op),
            "stablehlo.convolution" | "stablehlo.custom_call" => LIBRARY,
            "stablehlo.sort" => UNKNOWN,
            _ if micros > 0.0 => micros.into(),
            _ if self.program.num_regions(op) > 0 && self.is_run_inside(op) => UNKNOWN,
            _ => (read + made) / TRAFFIC,
        };
        let inside = [self.has_collectives(op), false];
        Estimated { cost, latency, inside, ..Estimated::default() }
    }
    /// Whether `op` runs the blocks in it as they are.
    fn is_run_inside(&self, op: OpId) -> bool {
        matches!(self.program.kind(op), OpKind::While | OpKind::Case)
    }
    fn has_collectives(&self, op: OpId) -> bool {
        let program = self.program;
        program.num_regions(op) > 0
            && program
                .pre_order(op)
                .skip(1)
                .any(|inner| latency(program.op_name(inner), 1.0, 1.0) > 0.0)
    }
    /// Microseconds of a product.
    fn product(&mut self, op: OpId) -> f64 {
        let Outcome::Counted(work) = self.works.of(op) else { return UNKNOWN };
        let flops = work.flops as f64;
        let [left, right] = [0, 1].map(|index| self.program.operand(op, index));
        let result = self.program.result(op, 0);
        let is_bf16 = [left, right, result].map(|it| self.works.tensors.element(it) == "bf16");
        let [left, right, result] =
            [left, right, result].map(|it| self.works.tensors.of(it).elements as f64);
        // With b batches, m rows, n columns and k contracted: 2 bmnk flops, bmk, bkn and bmn elements.
        let (contracted, rows, columns) =
            (flops / 2.0 / result, flops / 2.0 / right, flops / 2.0 / left);
        let batches = left / (rows * contracted);
        let sizes = [contracted, rows, columns].map(|size| size.clamp(SIZES.0, SIZES.1));
        let table = 2.0 * batches.clamp(BATCHES.0, BATCHES.1) * sizes.iter().product::<f64>();
        let (most, half) = if is_bf16 == [true; 3] { BF16_PRODUCTS } else { PRODUCTS };
        let cost = flops * (1.0 + (half / table).powf(EXPONENT)) / most;
        if cost.is_finite() {
            cost
        } else {
            UNKNOWN
        }
    }
}

/// Microseconds of the collective `name` of eight H100, which reads and makes so many bytes; 0 if it is none. Of groups whose size is
/// not known by these, the middle is taken.
fn latency(name: &str, read: f64, made: f64) -> f64 {
    let bytes = read.max(made);
    // Microseconds of small ones, what grows with the root of the bytes, and bytes per microsecond of large ones.
    let (least, root, most) = match (name, bytes / read.min(made)) {
        ("stablehlo.all_reduce", _) => (25.0, 0.0068, 0.22e6),
        ("stablehlo.reduce_scatter", ..3.0) => (12.0, 0.0068, 0.41e6),
        ("stablehlo.reduce_scatter", _) => (20.0, 0.0034, 0.376e6),
        ("stablehlo.all_gather", ..3.0) => (11.0, 0.0034, 0.55e6),
        ("stablehlo.all_gather", ..6.0) => (14.0, 0.0034, 0.44e6),
        ("stablehlo.all_gather", _) => (18.0, 0.0034, 0.4e6),
        ("stablehlo.all_to_all" | "stablehlo.collective_broadcast", _) => (30.0, 0.0034, 0.5e6),
        ("stablehlo.collective_permute", _) => (11.0, 0.02, 0.4e6),
        _ => return 0.0,
    };
    (least + root * bytes.sqrt() + bytes / most) * (bytes.clamp(1.0, SMALLEST) / SMALLEST)
}

/// The bytes of the items that kernel `at` reads.
fn bytes_read(graph: &Graph, at: u32) -> f64 {
    let reads = graph.reads(at).iter();
    let bytes = |item: u32| graph.items[graph.stored_as(item) as usize].bytes;
    reads.map(|read| bytes(read.item).min(read.bytes.into()) as f64).sum()
}

/// The bytes of the items that kernel `at` writes.
fn bytes_made(graph: &Graph, at: u32) -> f64 {
    graph.makes(at).iter().map(|&item| graph.items[item as usize].bytes as f64).sum()
}
