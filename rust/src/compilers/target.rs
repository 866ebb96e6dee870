//! The modelled compilers, and the decisions in which they differ.
//!
//! A pass is modelled once; where compilers differ, it asks the predicates in this file.

/// A compiler of per-device programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compiler {
    /// XLA:CPU.
    XlaCpu,
    /// XLA:GPU.
    XlaGpu,
    /// XLA:TPU.
    XlaTpu,
    /// No particular one: fusion and layouts as in XLA:CPU, without the conversions to `f32` that only CPUs need.
    #[default]
    None,
}

impl Compiler {
    /// All compilers.
    pub const ALL: [Self; 4] = [Self::XlaCpu, Self::XlaGpu, Self::XlaTpu, Self::None];

    /// Its name, as in `cost(compiler=...)`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XlaCpu => "xla-cpu",
            Self::XlaGpu => "xla-gpu",
            Self::XlaTpu => "xla-tpu",
            Self::None => "none",
        }
    }
    /// The compiler called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
    /// Whether it targets CPUs: it computes `bf16` as `f32`, and expands ops that CPUs have no kernels for.
    pub const fn is_for_hosts(self) -> bool {
        matches!(self, Self::XlaCpu)
    }
    /// Whether it orders kernels for least memory (`DefaultMemoryScheduler`), not breadth first (`BFScheduler`).
    pub const fn orders_for_memory(self) -> bool {
        matches!(self, Self::XlaGpu | Self::XlaTpu)
    }
    /// Whether collectives are asynchronous: started as early and awaited as late as possible, which keeps their operands live
    /// meanwhile.
    pub const fn starts_collectives_early(self) -> bool {
        matches!(self, Self::XlaGpu)
    }
    /// Whether what it allocates counts, and not what is live: all temporaries are in one allocation, which does not move.
    pub const fn allocates_holes(self) -> bool {
        matches!(self, Self::XlaGpu | Self::XlaTpu)
    }
    /// Whether temporaries are placed in the order in which they are made, and not the largest first.
    pub const fn places_in_order(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// Temporaries begin at multiples of this number of bytes; on TPUs that is `xla_jf_program_hbm_alignment_in_kib`.
    pub const fn alignment(self) -> u128 {
        match self {
            Self::XlaGpu => 256,
            Self::XlaTpu => 16 << 10,
            Self::XlaCpu | Self::None => 64,
        }
    }
    /// Whether an all-reduce whose result each device only slices becomes a reduce-scatter (`ReduceScatterCreator`).
    pub const fn creates_reduce_scatters(self) -> bool {
        matches!(self, Self::XlaGpu | Self::XlaTpu)
    }
    /// Whether optimization barriers stay until kernels are scheduled: their results are their operands in memory.
    pub const fn aliases_barriers(self) -> bool {
        matches!(self, Self::XlaGpu | Self::XlaTpu)
    }
    /// Whether fusion follows a performance model of kernels (`PriorityFusion`), and no library computes reductions.
    pub const fn fuses_by_priority(self) -> bool {
        matches!(self, Self::XlaGpu)
    }
    /// Whether a library computes long reductions, in kernels of its own.
    pub const fn sums_by_library(self) -> bool {
        matches!(self, Self::XlaCpu | Self::None)
    }
    /// Whether arrays are stored as tiles, and padded to a multiple of the tile's size.
    pub const fn has_tiles(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// Whether it simplifies the program before it propagates shardings; others do afterwards.
    pub const fn simplifies_before_partitioning(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// Whether values that are used soon live in vector memory, which is not counted (`MemorySpaceAssignment`).
    pub const fn has_vector_memory(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// Whether a dot fuses the elementwise producers of its operands, and elementwise ops and reductions fuse dots as producers;
    /// all of them read and write their arrays in any layout.
    pub const fn fuses_products(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// The most uses for each of which something expensive is computed anew.
    pub const fn expensive_uses(self, reads_rows: bool) -> u32 {
        match self {
            Self::XlaTpu if reads_rows => 2,
            Self::XlaTpu => 8,
            Self::XlaCpu | Self::XlaGpu | Self::None => 0,
        }
    }
    /// Whether products of default precision round operands of `f32` to `bf16` (`BFloat16Propagation`).
    pub const fn rounds_operands(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// Whether broadcasts that a loop only reads are computed in its body (`WhileLoopFusibleSinking`).
    pub const fn sinks_into_loops(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// Whether a loop copies to and from the host in the background: a value that an iteration makes while the next one runs, and one
    /// that it needs while the one before runs.
    pub const fn pipelines_host_copies(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// Whether an all-reduce may write its results over its operands.
    pub const fn reduces_in_place(self) -> bool {
        matches!(self, Self::XlaGpu | Self::XlaTpu)
    }
    /// Whether an all-reduce writes its results over its operands in any case, which are copied before if they are needed later.
    pub const fn reduces_over_operands(self) -> bool {
        matches!(self, Self::XlaGpu)
    }
    /// Whether its kernels are modelled so that times and traffic are theirs, not those of ops by themselves.
    pub const fn has_timed_kernels(self) -> bool {
        matches!(self, Self::XlaGpu | Self::XlaCpu | Self::XlaTpu)
    }
    /// Whether a kernel that transposes something besides what it computes takes as long as one that only transposes: loops are
    /// not tiled.
    pub const fn transposes_in_loops(self) -> bool {
        matches!(self, Self::XlaCpu)
    }
    /// Whether what is computed from products keeps their layout (`LayoutAssignment`).
    pub const fn keeps_product_orders(self) -> bool {
        matches!(self, Self::XlaGpu)
    }
    /// Whether a gather computes the elements that it reads; if not, it reads an array in memory.
    pub const fn gathers_computed(self) -> bool {
        !matches!(self, Self::XlaTpu)
    }
    /// Whether dots with few rows and columns are split along the contracting dims (`SplitkRewriter`).
    pub const fn splits_contractions(self) -> bool {
        matches!(self, Self::XlaGpu)
    }
    /// Whether it also combines all-gathers and reduce-scatters, not only all-reduces.
    pub const fn combines_all_collectives(self) -> bool {
        matches!(self, Self::XlaGpu)
    }
    /// Its passes that change the program before kernels are made, most of them on collectives, with commas between;
    /// [`crate::pipeline`] has them.
    pub const fn collective_passes(self) -> &'static str {
        match self {
            Self::XlaGpu => {
                "dot-strength-reduction,top-k-of-shards,topk-decomposer,\
                 all-reduce-folder,all-gather-dynamic-slice-simplifier,all-reduce-reassociate,\
                 while-loop-all-reduce-code-motion,\
                 all-reduce-to-reduce-scatter,all-gather-broadcast-reorder,\
                 scatter-add-folder,remove-unused-ops"
            }
            Self::XlaTpu => {
                "top-k-of-shards,all-reduce-folder,all-reduce-reassociate,\
                 while-loop-all-reduce-code-motion,\
                 schedule-aware-collective-cse,all-gather-broadcast-reorder,\
                 reduce-scatter-decomposer,\
                 remove-unused-ops"
            }
            Self::XlaCpu | Self::None => "",
        }
    }
    /// Whether collectives are combined from the last to the first, with what they do not depend on.
    pub const fn combines_from_last(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// Percent of the memory of a chip that programs may take, and of what is left of it that may be live, where kernels are ordered
    /// to hide latency: on TPUs `xla_tpu_scheduler_percent_shared_memory_limit`.
    pub const fn memory_percents(self) -> (u128, u128) {
        match self {
            Self::XlaTpu => (95, 100),
            Self::XlaGpu | Self::XlaCpu | Self::None => (80, 95),
        }
    }
    /// The byte threshold for combining collectives; `None` if there is none.
    pub const fn combined_bytes(self) -> Option<u128> {
        match self {
            Self::XlaGpu => Some(30 << 20),
            // The most that was seen in compiled programs, three of 32 MiB, where a fourth was left out.
            Self::XlaTpu => Some(100 << 20),
            Self::XlaCpu | Self::None => None,
        }
    }
}
