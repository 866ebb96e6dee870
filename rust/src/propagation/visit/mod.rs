//! One visit of an op: computes new shardings of its tensors from their current ones.
//!
//! A visit projects the shardings of its tensors to the factors of the op's rule, decides which
//! axes each factor can take, and projects back. It is a pure function. All updates are computed
//! from the shardings at the start of the visit. The caller applies them in order, so if a value is
//! several tensors of the op, the last update wins.
//!
//! The inputs of a visit and their names:
//!
//! | name | what it is |
//! | --- | --- |
//! | [`VisitSpec`] | the rule and other facts about the op: everything except shardings and the kind of run |
//! | [`SpecId`] | the id of a spec in the program; ops with the same signature mostly share one |
//! | [`Run`] | the kind of greedy run: an op-priority step and a [`VisitStrategy`] |
//! | [`VisitInput`] | a spec with the shardings of the tensors |
//! | [`Update`] | the output: a tensor, and its new sharding |
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`strategy`] | the strategies, and what each guarantees |
//! | [`direction`] | the direction of each factor in each op-priority step |
//! | [`compatible`] | which axes tensors agree on along a factor |
//! | [`basic`], [`aggressive`] | the two strategies, on the factor table |
//! | [`workspace`] | the visit as a whole |
//! | [`factor_table`] | one visit as a table, for display |

pub mod aggressive;
pub mod basic;
pub mod compatible;
pub mod direction;
pub mod factor_table;
pub mod factor_visit;
pub mod input;
pub mod run;
pub mod spec;
pub mod strategy;
pub mod workspace;

pub use factor_visit::FactorVisit;
pub use input::{is_update, Subset, Update, VisitInput};
pub use run::{Run, RunMask, MAX_RUNS};
pub use spec::{SpecId, VisitSpec};
pub use strategy::{Continuation, VisitStrategy};
pub use workspace::{visit, Workspace};
