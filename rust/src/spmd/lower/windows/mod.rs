//! Ops whose shards need elements of other shards: windows, slices, pads, reversals, concatenations, convolutions.
//!
//! [`elements_needed`] says which elements, [`halo_exchange`] fetches them; each other file is a family of ops.

pub(super) mod concatenate;
pub(super) mod convolution;
pub(super) mod cumulative;
pub(super) mod elements_needed;
pub(super) mod halo_exchange;
pub(super) mod reduce_window;
pub(super) mod select_and_scatter;
pub(super) mod shared_windows;
pub(super) mod slice_pad_reverse;
