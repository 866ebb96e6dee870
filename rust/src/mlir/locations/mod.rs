//! Source locations: from values to lines of the user's program, and back.

mod call_sites;
mod innermost;
mod installed;
mod places;
mod value;

pub use call_sites::CallSites;
pub use innermost::Origin;
pub use installed::is_installed;
