//! Source locations: from values to the user's program, and back.

mod call_sites;
pub(super) mod innermost;
mod places;

pub use call_sites::CallSites;
pub use innermost::Origin;
