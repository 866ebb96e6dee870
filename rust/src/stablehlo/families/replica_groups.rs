//! Checks the replica groups of collectives.

use crate::inline_list::InlineList;
use crate::stablehlo::attributes::Attributes;
use crate::stablehlo::dim_checks::list;
use crate::stablehlo::mistake::{bare, ensure, Mistake};
use rustc_hash::FxHashSet;

/// Groups given as a dense table, with its sizes.
struct Groups<'a> {
    sizes: &'a [i64],
    ids: Vec<i64>,
}

/// The groups of a collective; `None` if they are given by mesh axes.
fn groups<'a>(attributes: &'a Attributes<'_>) -> Option<Groups<'a>> {
    let attribute = attributes.get("replica_groups")?;
    let (sizes, _) = attribute.dense_type()?;
    Some(Groups { sizes, ids: attribute.dense_ints()? })
}

/// Conditions on groups.
#[derive(Clone, Copy)]
pub struct GroupNeeds {
    /// All groups must have the same size.
    pub is_uniform: bool,
    /// There must be at least one group.
    pub is_global: bool,
    /// The required size of each group, if any.
    pub size: Option<i64>,
}

/// Checks the groups of a collective.
pub fn check_groups(attributes: &Attributes<'_>, needs: GroupNeeds) -> Result<(), Mistake> {
    let Some(Groups { sizes, ids }) = groups(attributes) else { return Ok(()) };
    let [rows, columns] = sizes[..] else {
        return Err(bare("replica groups should be a rank 2 tensor"));
    };
    ensure(!needs.is_global || rows.wrapping_mul(columns) != 0, || {
        "if `use_global_device_ids` is set, the replica groups cannot be empty".to_owned()
    })?;
    match needs.size.filter(|&size| needs.is_uniform && size != columns && rows != 0) {
        None if is_permutation(&ids) => return Ok(()),
        _ => {}
    }
    let mut seen: FxHashSet<i64> = FxHashSet::default();
    for id in ids {
        if id == -1 {
            ensure(!needs.is_uniform, || "Invalid replica id -1".to_owned())?;
            continue;
        }
        ensure(seen.insert(id), || format!("replica id #{id} seen more than once"))?;
    }
    if let Some(missing) = (0..seen.len() as i64).find(|id| !seen.contains(id)) {
        return Err(bare(format!("replica id #{missing} not seen in replica groups")));
    }
    match needs.size.filter(|&size| needs.is_uniform && size != columns && rows != 0) {
        Some(size) => Err(bare(format!("group size of replica_groups must be {size}"))),
        None => Ok(()),
    }
}

/// Whether `ids` are the numbers from 0 on, each once.
fn is_permutation(ids: &[i64]) -> bool {
    let mut is_seen = InlineList::<bool, 64>::repeat(false, ids.len());
    for &id in ids {
        match usize::try_from(id).ok().and_then(|id| is_seen.get_mut(id)) {
            Some(is_seen) if !*is_seen => *is_seen = true,
            _ => return false,
        }
    }
    true
}

/// Checks the groups of a broadcast, which need not contain all devices.
pub fn check_broadcast_groups(attributes: &Attributes<'_>) -> Result<(), Mistake> {
    let Some(Groups { sizes, ids }) = groups(attributes) else { return Ok(()) };
    let rank = sizes.len();
    ensure(rank == 2, || {
        format!("replica groups should be a rank 2 tensor,but instead it is of rank {rank}")
    })?;
    let mut seen: FxHashSet<i64> = FxHashSet::default();
    for id in ids {
        ensure(id >= 0, || format!("replica_groups values must be positive, but was given {id}"))?;
        ensure(seen.insert(id), || format!("replica id #{id} seen more than once"))?;
    }
    Ok(())
}

/// Checks the source-target pairs of a collective permute: no device is a source or a target twice.
pub fn check_pairs(attributes: &Attributes<'_>) -> Result<(), Mistake> {
    let attribute = attributes.get("source_target_pairs").ok_or_else(Mistake::silent)?;
    let Some((sizes, _)) = attribute.dense_type() else { return Ok(()) };
    let rank = sizes.len();
    ensure(rank == 2, || {
        format!("expect source_target_pairs attribute to be of rank 2, but got rank {rank}")
    })?;
    ensure(sizes[1] == 2, || {
        let sizes = list(sizes);
        format!("expect source_target_pairs attribute of shape (N, 2), but got ({sizes})")
    })?;
    let ids = attribute.dense_ints().unwrap_or_default();
    let (sources, targets): (Vec<i64>, Vec<i64>) =
        ids.chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip();
    if is_permutation(&sources) && is_permutation(&targets) {
        return Ok(());
    }
    let mut seen: [FxHashSet<i64>; 2] = Default::default();
    for (at, id) in ids.into_iter().enumerate() {
        ensure(id >= 0, || "replica ids in source_target_pairs must be >= 0.".to_owned())?;
        ensure(seen[at % 2].insert(id), || {
            let what = ["sources", "targets"][at % 2];
            format!("duplicate {what} not allowed.")
        })?;
    }
    Ok(())
}
