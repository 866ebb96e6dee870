//! What XLA's compiler for TPUs does that the one for hosts does not.
//!
//! That compiler is not public: each file says what its compiled programs show, and the compiled programs of `tests/accelerators` hold it.

pub mod async_copies;
pub mod before_partitioning;
pub mod bfloat16_propagation;
pub mod convolution_layouts;
pub mod cost_analysis;
pub mod cross_program_prefetch;
pub mod entry_layouts;
pub mod fused_outputs;
pub mod latency_estimator;
pub mod memory_space_assignment;
pub mod multi_output_fusion;
pub mod narrowed_values;
pub mod one_hot_scatter;
pub mod product_fusion;
pub mod shared_kernels;
pub mod small_results;
pub mod softmax_fusion;
pub mod tiles;
pub mod vector_memory;
pub mod while_loop_fusible_sinking;
