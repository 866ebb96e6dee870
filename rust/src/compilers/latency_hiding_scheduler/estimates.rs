//! What is known of kernels before they are scheduled, by the model of each compiler.

/// The number of resources that collectives share.
pub const RESOURCES: usize = 2;

/// What is known of a kernel before it is scheduled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimated {
    /// Microseconds that it takes; of a collective, to start it.
    pub cost: f64,
    /// Microseconds until a collective is done; 0 for other kernels.
    pub latency: f64,
    /// The resource that a collective takes, below [`RESOURCES`].
    pub resource: usize,
    /// The resources that the collectives inside of it take.
    pub inside: [bool; RESOURCES],
}

/// What a compiler takes for true of all programs.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Microseconds between a kernel and what reads its result.
    pub between: f64,
    /// The collectives that may run at a time, of each resource.
    pub at_once: [u32; RESOURCES],
}
