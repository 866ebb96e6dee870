//! Names of values and blocks, `%x` and `^bb1`: their scopes, and the names of values in results.

mod binding;
mod labels;
mod scopes;
mod text;

pub(super) use binding::{op_traits, NameUse, Names};
pub(super) use labels::Labels;
pub(super) use text::{append_fresh, fresh_prefix, group_number, name_giver, ssa_name_at};
