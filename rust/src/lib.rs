//! shardcore completes the sharding of every value of a tensor program, exactly as Shardy does.
//!
//! A program goes through the engine in five steps:
//!
//! 1. [`mlir`] parses MLIR text into a [`ir::Program`]: dense arrays of ops, values and uses.
//! 2. Import passes ([`import`]) add the ops that propagation needs, such as data-flow edges.
//! 3. [`propagation`] visits ops in the order of MLIR's greedy driver. A visit projects the
//!    shardings of the op's tensors to the factors of its rule ([`projection`]), decides which axes
//!    each factor can take, and projects back. Visits repeat until nothing changes.
//! 4. Export passes ([`export`]) turn the result into a program for the partitioner.
//! 5. [`mlir`] prints the program, copying the text of every op that was not changed.
//!
//! Floors (a module uses strictly lower ones only):
//!
//! | floor | modules |
//! | --- | --- |
//! | 0 | [`index`] |
//! | 1 | [`bitset`], [`error`], [`inline_list`], [`memoization`], [`shardy`], [`suggest`] |
//! | 2 | [`mesh`], [`diagnostics`], [`memory`], [`solver`] |
//! | 3 | [`axis`] |
//! | 4 | [`sharding`], [`op_sharding_rule`] |
//! | 5 | [`ir`], [`layout`], [`projection`] |
//! | 6 | [`attribute`], [`context`], [`group_nodes`], [`sharding_totals`] |
//! | 7 | [`mlir`] |
//! | 8 | [`stablehlo`] |
//! | 9 | [`verify`], [`rules`], [`partition`] |
//! | 10 | [`inlining`], [`propagation`], [`export`], [`spmd`] |
//! | 11 | [`import`], [`work`] |
//! | 12 | [`compilers`], [`op_table`] |
//! | 13 | [`cost`], [`pipeline`] |
//! | 14 | [`caches`], [`explain`], [`module`], [`session`] |
//! | 15 | `python` |

/// A separate allocator: the tables of a program are together in memory, and their memory is reused
/// for the next program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod attribute;
pub mod axis;
pub mod bitset;
pub mod caches;
pub mod compilers;
pub mod context;
pub mod cost;
pub mod diagnostics;
pub mod error;
pub mod explain;
pub mod export;
pub mod group_nodes;
pub mod import;
pub mod index;
pub mod inline_list;
pub mod inlining;
pub mod ir;
pub mod layout;
pub mod memoization;
pub mod memory;
pub mod mesh;
pub mod mlir;
pub mod module;
pub mod op_sharding_rule;
pub mod op_table;
pub mod partition;
pub mod pipeline;
pub mod projection;
pub mod propagation;
#[cfg(feature = "python")]
mod python;
pub mod rules;
pub mod session;
pub mod sharding;
pub mod sharding_totals;
pub mod shardy;
pub mod solver;
pub mod spmd;
pub mod stablehlo;
pub mod suggest;
pub mod verify;
pub mod work;

pub use error::{Code, Diagnostic, Error, Result};
pub use ir::Program;
pub use mesh::Mesh;
