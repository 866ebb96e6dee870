//! Movement: exchange of elements along a sharded dim.
//!
//! A shard of the result of a slice, a pad, a convolution needs a *window* of the operand along each dim: an interval
//! whose start depends on the number of the shard.
//!
//! 1. [`windows`] computes the window of each shard, of a dim that may be padded and dilated.
//! 2. [`pieces`] intersects windows with shards: the interval that each shard needs from each other shard.
//! 3. [`schedule`] sorts pieces into rounds; in a round each shard sends at most one piece and receives at most one. [`halos`] does
//!    so as XLA's partitioner.
//!    [`halos`] does so as XLA's partitioner.
//! 4. [`fetch`] builds ops: a collective permute for each round, with as many elements as its longest piece, and ops that assemble
//!    the pieces at offsets that depend on the device; [`strips`] does so as XLA's partitioner.
//!
//! For example, 12 elements over 4 shards, of which a shard of the result needs its own and one more on either side:
//!
//! ```text
//! shard            0          1          2          3
//! holds          [0, 3)     [3, 6)     [6, 9)    [9, 12)
//! window        [-1, 4)     [2, 7)    [5, 10)    [8, 13)
//! from the left     -          2          5          8       one round: the last element of each goes right
//! from the right    3          6          9          -       one round: the first element of each goes left
//! ```

pub mod fetch;
pub mod halos;
pub mod pieces;
pub mod refined;
pub mod schedule;
mod strips;
pub mod windows;

pub use fetch::Fetch;
pub use pieces::{pieces_of, Extent, Piece};
pub use refined::refined;
pub use schedule::{Rounds, Schedule};
pub use windows::Windows;
