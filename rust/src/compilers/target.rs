//! The compilers that figures can follow, and the decisions in which they differ.
//!
//! A pass is modelled once: what only some compilers do is asked here.

/// A compiler of per-device programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compiler {
    /// XLA's compiler for hosts.
    XlaCpu,
    /// XLA's compiler for GPUs.
    XlaGpu,
    /// XLA's compiler for TPUs.
    XlaTpu,
    /// No particular one: fusion and layouts as for hosts, without the conversions to `f32` that only hosts need.
    #[default]
    None,
}

impl Compiler {
    /// All of them.
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
    /// The one called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
    /// Whether it computes `bf16` as `f32`, and expands what hosts have no kernels for.
    pub const fn is_for_hosts(self) -> bool {
        matches!(self, Self::XlaCpu)
    }
    /// Whether it orders kernels for least memory (`DefaultMemoryScheduler`), not breadth first (`BFScheduler`).
    pub const fn orders_for_memory(self) -> bool {
        matches!(self, Self::XlaGpu | Self::XlaTpu)
    }
    /// Whether collectives start as early as they can and are awaited as late, so that what they read stays until then.
    pub const fn starts_collectives_early(self) -> bool {
        matches!(self, Self::XlaGpu)
    }
    /// Whether an all-reduce of which each device keeps a slice becomes one reduce-scatter (`ReduceScatterCreator`).
    pub const fn creates_reduce_scatters(self) -> bool {
        matches!(self, Self::XlaGpu | Self::XlaTpu)
    }
    /// Whether what is fused follows a model of the time of kernels (`PriorityFusion`), and no library computes reductions.
    pub const fn fuses_by_priority(self) -> bool {
        matches!(self, Self::XlaGpu)
    }
    /// Whether arrays consist of tiles, to whose size they are padded.
    pub const fn has_tiles(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// Whether values that are needed soon are in memory of the core, outside of what is counted (`MemorySpaceAssignment`).
    pub const fn has_vector_memory(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// Whether products take in the elementwise ops that make their operands, and elementwise ops and reductions take in products; and
    /// all of them read and write their arrays in any order of dims.
    pub const fn fuses_products(self) -> bool {
        matches!(self, Self::XlaTpu)
    }
    /// Whether its kernels are modelled so that times and traffic are theirs, not those of ops by themselves.
    pub const fn has_timed_kernels(self) -> bool {
        matches!(self, Self::XlaGpu | Self::XlaCpu)
    }
    /// Whether a kernel that transposes something besides what it computes takes as long as one that only transposes: loops are
    /// not tiled.
    pub const fn transposes_in_loops(self) -> bool {
        matches!(self, Self::XlaCpu)
    }
    /// Whether products of few rows and columns are computed in parts of what they contract (`SplitkRewriter`).
    pub const fn splits_contractions(self) -> bool {
        matches!(self, Self::XlaGpu)
    }
    /// Whether it combines gathers and reduce-scatters, not all-reduces alone.
    pub const fn combines_all_collectives(self) -> bool {
        matches!(self, Self::XlaGpu)
    }
    /// The most bytes of the collectives that it combines into one; `None` if there is no bound.
    pub const fn combined_bytes(self) -> Option<u128> {
        match self {
            Self::XlaGpu => Some(30 << 20),
            // The most that was seen in compiled programs, three of 32 MiB, where a fourth was left out.
            Self::XlaTpu => Some(100 << 20),
            Self::XlaCpu | Self::None => None,
        }
    }
}
