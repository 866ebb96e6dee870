//! The mesh axes along which a `StableHLO` collective runs, from its groups of devices.

use super::local::Local;
use crate::attribute::parse_digit_groups;
use crate::axis::{axes_along, sort_and_merge, total_size, AxisRef};
use crate::error::Span;
use crate::index::{AxisId, Id, MeshId, OpId, StrId};
use crate::ir::Program;
use crate::mesh::Mesh;
use crate::mlir::{op_attribute, AttrValue, GroupsByAxes, REPLICA_GROUPS};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

/// The devices that communicate in a collective.
#[derive(Clone, Debug)]
enum Groups<'a> {
    /// Lists of devices, all of this size.
    Lists { size: usize, ids: Vec<i64> },
    /// Sources and targets of a permute.
    Pairs(Vec<[i64; 2]>),
    /// Axes of a mesh.
    ByAxes(GroupsByAxes<'a>),
    /// Strides and sizes of the digits in which the positions of devices in a group differ.
    Digits(Vec<(i64, i64)>),
    /// Something else, or nothing.
    Unknown,
}

/// Axes of a mesh; `None` where these are not known.
pub type Along = Option<(MeshId, Vec<AxisRef>)>;

/// The groups of a program's collectives, and their axes; equal groups are stored once.
#[derive(Default)]
pub struct KnownGroups<'a> {
    /// The ids by text; and whether that has the pairs of a permute, since a list of pairs may also be read as groups of two.
    ids: FxHashMap<(&'a str, bool), usize>,
    /// The ids by the location of the text.
    places: FxHashMap<(Span, bool), usize>,
    groups: Vec<Groups<'a>>,
    /// The sizes of the groups, if these determine one.
    sizes: Vec<Option<i64>>,
    /// The names of the attributes that hold groups.
    names: Option<[StrId; 2]>,
    axes: FxHashMap<(usize, MeshId), Option<Vec<AxisRef>>>,
    /// The only mesh of the source with several devices.
    only_mesh: OnceCell<Option<MeshId>>,
}

impl<'a> KnownGroups<'a> {
    /// The id of the groups of `op`.
    pub fn of(&mut self, program: &'a Program, op: OpId) -> usize {
        let names = *self.names.get_or_insert_with(|| {
            let find = |name| program.strings().find(name).unwrap_or_default();
            ["source_target_pairs", REPLICA_GROUPS].map(find)
        });
        let attrs = program.op_attrs(op).iter();
        let value = |name: StrId| attrs.clone().find(|attr| attr.name == name).map(|it| it.value);
        let pairs = value(names[0]);
        let are_pairs = pairs.is_some();
        let place = pairs.or_else(|| value(names[1])).unwrap_or_default();
        if let Some(&known) = self.places.get(&(place, are_pairs)) {
            return known;
        }
        let text = program.text().get(place);
        let id = *self.ids.entry((text, are_pairs)).or_insert_with(|| {
            let groups = groups(program, op);
            self.sizes.push(groups.num_devices());
            self.groups.push(groups);
            self.groups.len() - 1
        });
        self.places.insert((place, are_pairs), id);
        id
    }
    /// The size of a group, given that the groups are along `axes` of `mesh`, if that is known; 1 if it is not known.
    pub fn num_devices(&self, local: Local<'_>, id: usize, along: &Along) -> i64 {
        let along = along.as_ref().map(|(mesh, axes)| total_size(axes, local.source.mesh(*mesh)));
        self.sizes[id].or(along).unwrap_or(1)
    }
    /// The only mesh of the source with several devices; `None` if there is none, or more than one.
    pub fn only_mesh(&self, local: Local<'_>) -> Option<MeshId> {
        *self.only_mesh.get_or_init(|| {
            let mut meshes = local.meshes(None);
            meshes.next().filter(|_| meshes.next().is_none())
        })
    }
    /// The first of `meshes` along whose axes the groups are, and these axes.
    pub fn axes(
        &mut self,
        local: Local<'_>,
        id: usize,
        mut meshes: impl Iterator<Item = MeshId>,
    ) -> Along {
        let groups = &self.groups[id];
        meshes.find_map(|mesh| {
            let axes = self.axes.entry((id, mesh));
            let axes = axes.or_insert_with(|| groups.axes(local.source.mesh(mesh)));
            axes.clone().map(|axes| (mesh, axes))
        })
    }
}

fn groups(program: &Program, op: OpId) -> Groups<'_> {
    let ints = |value: &AttrValue<'_>| value.as_ints();
    let values = ["source_target_pairs", REPLICA_GROUPS];
    let [pairs, lists] = values.map(|name| op_attribute(program, op, name));
    for value in [&pairs, &lists].into_iter().flatten() {
        let text = value.as_str();
        if let Some(digits) = text.and_then(parse_digit_groups) {
            return Groups::Digits(digits);
        }
    }
    if let Some(pairs) = pairs {
        let Some(ids) = ints(&pairs) else { return Groups::Unknown };
        return Groups::Pairs(ids.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect());
    }
    let Some(value) = lists else { return Groups::Unknown };
    let AttrValue::Dense { ty, .. } = &value else {
        return GroupsByAxes::of(program, op).map_or(Groups::Unknown, Groups::ByAxes);
    };
    match (columns(ty), ints(&value)) {
        (Some(size), Some(ids)) if ids.len() == 1 => {
            Groups::Lists { size, ids: vec![ids[0]; size] }
        }
        (Some(size), Some(ids)) if size > 0 && ids.len() % size == 0 => Groups::Lists { size, ids },
        _ => Groups::Unknown,
    }
}

/// The number of columns of `tensor<2x4xi64>`.
fn columns(ty: &str) -> Option<usize> {
    let inner = ty.trim().strip_prefix("tensor<")?.strip_suffix("xi64>")?;
    inner.rsplit('x').next()?.parse().ok()
}

impl Groups<'_> {
    fn num_devices(&self) -> Option<i64> {
        match self {
            Self::Lists { size, .. } => Some(*size as i64),
            Self::Pairs(pairs) if pairs.iter().all(|[from, to]| from == to) => Some(1),
            Self::Pairs(pairs) => {
                let mut ids: Vec<i64> = pairs.iter().flatten().copied().collect();
                ids.sort_unstable();
                ids.dedup();
                Some(ids.len() as i64)
            }
            Self::Digits(digits) => {
                Some(digits.iter().fold(1, |count: i64, &(_, size)| count.saturating_mul(size)))
            }
            Self::ByAxes(_) | Self::Unknown => None,
        }
    }
    /// The axes of `mesh`, or sub-axes, in mesh order, along which the devices of each group differ; `None` if groups are not along
    /// axes.
    fn axes(&self, mesh: &Mesh) -> Option<Vec<AxisRef>> {
        match self {
            Self::Lists { size, ids } => {
                let positions = positions(mesh, ids)?;
                axes_of_groups(mesh, *size, &positions)
            }
            Self::Pairs(pairs) => {
                let ids: Vec<i64> = pairs.iter().flatten().copied().collect();
                Some(axes_of_pairs(mesh, &positions(mesh, &ids)?))
            }
            Self::ByAxes(groups) => groups.axes(mesh),
            Self::Digits(digits) => {
                let parts = digits.iter().map(|&(stride, size)| axes_along(stride, size, mesh));
                let mut axes = parts.collect::<Option<Vec<_>>>()?.concat();
                sort_and_merge(&mut axes, mesh);
                Some(axes)
            }
            Self::Unknown => None,
        }
    }
}

/// The positions in `mesh` of the devices `ids`; `None` if it lacks one of them.
fn positions(mesh: &Mesh, ids: &[i64]) -> Option<Vec<i64>> {
    let count = mesh.device_count();
    let by_id: FxHashMap<i64, i64> = mesh.device_ids.iter().copied().zip(0..).collect();
    let position = |&id: &i64| {
        let at = if by_id.is_empty() { Some(id) } else { by_id.get(&id).copied() };
        at.filter(|at| (0..count).contains(at))
    };
    ids.iter().map(position).collect()
}

/// The axes along which each group of `size` of these positions differs, if they are the same for all groups.
fn axes_of_groups(mesh: &Mesh, size: usize, positions: &[i64]) -> Option<Vec<AxisRef>> {
    let mut first: Option<Vec<i64>> = None;
    let mut bases = Vec::with_capacity(positions.len() / size);
    for group in positions.chunks_exact(size) {
        let mut group = group.to_vec();
        group.sort_unstable();
        let base = group[0];
        bases.push(base);
        for position in &mut group {
            *position -= base;
        }
        if *first.get_or_insert_with(|| group.clone()) != group {
            return None;
        }
    }
    let offsets = first?;
    let (mut axes, mut count) = (Vec::new(), 1);
    // Digits, the minor one first: `count` offsets are those of the digits found so far.
    while count < size {
        let stride = offsets[count];
        let is_next = |times: &usize| {
            let (start, base) = (times * count, (*times as i64).saturating_mul(stride));
            let expected = |at: usize| base.saturating_add(offsets[at]);
            (0..count).all(|at| offsets.get(start + at) == Some(&expected(at)))
        };
        let times = (1..size).take_while(is_next).count() + 1;
        let is_digit = |base: &i64| base / stride % times as i64 == 0;
        let is_none = stride <= 0 || times == 1;
        if is_none || size % (count * times) != 0 || !bases.iter().all(is_digit) {
            return None;
        }
        let mut major = axes_along(stride, times as i64, mesh)?;
        major.append(&mut axes);
        axes = major;
        count *= times;
    }
    Some(axes)
}

/// The axes, or sub-axes, along which the two positions of some pair differ.
fn axes_of_pairs(mesh: &Mesh, positions: &[i64]) -> Vec<AxisRef> {
    let mut axes = Vec::new();
    let mut minor = 1;
    for (index, axis) in mesh.axes.iter().enumerate().rev() {
        for (pre_size, size) in smallest_parts(axis.size) {
            let stride = minor * (axis.size / (pre_size * size));
            let digit = |position: i64| position / stride % size;
            if positions.chunks_exact(2).any(|pair| digit(pair[0]) != digit(pair[1])) {
                let axis_id = AxisId::from_index(index);
                let is_whole = size == axis.size;
                let part = AxisRef::sub(axis_id, pre_size, size);
                axes.push(if is_whole { AxisRef::full(axis_id) } else { part });
            }
        }
        minor *= axis.size;
    }
    sort_and_merge(&mut axes, mesh);
    axes
}

/// The largest prime factor that is looked for.
const MAX_FACTOR: i64 = 1 << 12;

/// The sub-axes of an axis of size `size` whose sizes are primes, or have only large factors, major to minor: for each its pre-size
/// and its size.
fn smallest_parts(size: i64) -> Vec<(i64, i64)> {
    let (mut parts, mut before, mut factor) = (Vec::new(), 1, 2);
    while before < size {
        let left = size / before;
        if factor > MAX_FACTOR || factor * factor > left {
            factor = left;
        }
        if left % factor == 0 {
            parts.push((before, factor));
            before *= factor;
        } else {
            factor += 1;
        }
    }
    parts
}
