//! The factor table: the shardings of an op's tensors, projected to the factors of its rule.
//!
//! Propagation compares factors, not dims. Projecting assigns the axes of each dim to the dim's
//! factors, and splits an axis at a factor boundary; projecting back merges it again.
//!
//! For the rule `([ij])->([i, j]) {i=2, j=4}` over the mesh `["x"=4, "y"=2]`, with the operand
//! sharded as `[{"x", "y"}]` and the result as `[{?}, {?}]`:
//!
//! | tensor | i | j |
//! | --- | --- | --- |
//! | operand | `"x":(1)2` | `"x":(2)2, "y"` |
//! | result | `?` | `?` |
//!
//! After both factors have propagated, the result projects back to `[{"x":(1)2}, {"x":(2)2, "y"}]`.
//!
//! The minor-most factor of a dim takes all remaining axes, whether they divide its size or not.
//! Any other factor takes axes while they divide its size; the first axis that does not, and all
//! axes after it, *overflow*: they are stored with the factor so that projecting back loses
//! nothing, and no factor minor to it can be sharded.
//!
//! Source: Shardy's propagation document, "Sharding projection".

mod axis_list;
mod bucket_order;
mod dims_to_factors;
mod factors;
mod factors_to_dims;
mod row;
mod table;
mod tensors_by_factor;

pub use axis_list::AxisList;
pub use bucket_order::sort_by_bucket;
pub(crate) use dims_to_factors::gcd;
pub use factors::{FactorSharding, Factors};
pub use row::TensorFactorShardings;
pub use table::{greatest_common_prefix, Projection};
