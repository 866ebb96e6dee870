//! The cost estimates that custom calls carry: those of Pallas kernels, in their backend config.
//!
//! `pallas_call(cost_estimate=...)` becomes `"cost_estimate": {"flops": 8, "transcendentals": 0, "bytes_accessed": 64}` in
//! the JSON of the call, which XLA's cost analysis reads as well. It is for the shapes of the call on one device.

use super::Work;
use crate::index::SignatureId;
use crate::rules::SignatureView;
use rustc_hash::FxHashMap;

/// What one run of a custom call costs, as it says itself or as a user registered it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// What it computes.
    pub work: Work,
    /// Bytes that it reads and writes; `None` if they are those of its operands and results.
    pub bytes: Option<u128>,
}

/// The estimates that a user registered, by the signatures of the calls.
pub type Estimates = FxHashMap<SignatureId, Estimate>;

/// The estimate that the custom call of `view` carries.
pub fn estimate(view: &SignatureView<'_>) -> Option<Estimate> {
    let config = view.attribute("backend_config")?.as_str()?;
    let (_, rest) = config.split_once("\"cost_estimate\"")?;
    let (fields, _) = rest.split_once('{')?.1.split_once('}')?;
    let number = |name: &str| -> Option<u128> {
        let (_, rest) = fields.split_once(&format!("\"{name}\""))?;
        let text = rest.trim_start().strip_prefix(':')?.split(',').next()?.trim();
        text.parse().ok().or_else(|| {
            let value = text.parse::<f64>().ok()?;
            (value >= 0.0).then_some(value as u128)
        })
    };
    let flops = number("flops")?;
    let transcendentals = number("transcendentals").unwrap_or(0);
    let work = Work { transcendentals, ..Work::of_flops(flops) };
    Some(Estimate { work, bytes: number("bytes_accessed") })
}
