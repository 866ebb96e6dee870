//! Names of values and blocks, `%x` and `^bb1`: their scopes, and the value names that are shown to
//! users.

mod binding;
mod labels;
mod qualified;
mod scopes;
mod text;

pub(super) use binding::{NameUse, Names};
pub(super) use labels::Labels;
pub use qualified::{Denoted, QualifiedNames};
pub(super) use text::{append_fresh, group_number, name_giver, ssa_name_at};
