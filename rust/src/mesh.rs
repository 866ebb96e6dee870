//! Meshes: named axes with sizes over a list of devices.
//!
//! A mesh `<["x"=2, "y"=4]>` has the devices 0 to 7 in row-major order of its axes unless `device_ids` lists
//! others. A mesh without axes and with one device id is *maximal*: tensors are on that device as a whole. A
//! mesh without axes and without device ids is empty.
//!
//! Source: Shardy's sharding representation, "Mesh".

use crate::index::{AxisId, Id};
use rustc_hash::FxHashSet;
use std::hash::{Hash, Hasher};

/// One axis of a mesh.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MeshAxis {
    /// Its name, unique in the mesh.
    pub name: Box<str>,
    /// Number of devices along it.
    pub size: i64,
}

/// Axes in major-to-minor order, and the device ids if they are not `0..n`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Mesh {
    /// The axes, major to minor.
    pub axes: Vec<MeshAxis>,
    /// Device ids in row-major order of the axes; empty means `0..n`.
    pub device_ids: Vec<i64>,
    /// The indices of the axes sorted by name, if there are many axes. Ignored in comparisons.
    by_name: AxesByName,
}

/// The indices of the axes of a mesh, sorted by name; empty if they were not sorted.
#[derive(Clone, Debug, Default)]
struct AxesByName(Box<[u32]>);

impl PartialEq for AxesByName {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for AxesByName {}

impl Hash for AxesByName {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// With at most this many axes, a linear search finds an axis by name.
const FEW_AXES: usize = 32;

impl Mesh {
    /// The mesh of these axes and device ids.
    pub fn new(axes: Vec<MeshAxis>, device_ids: Vec<i64>) -> Self {
        let mut by_name = AxesByName::default();
        if axes.len() > FEW_AXES {
            by_name.0 = (0..axes.len() as u32).collect();
            by_name.0.sort_by_key(|&axis| &axes[axis as usize].name);
        }
        Self { axes, device_ids, by_name }
    }
    /// A mesh whose sizes are unknown, all 0, with an axis for each distinct name in `names`, in
    /// order of first appearance.
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut seen = FxHashSet::default();
        let new = names.into_iter().filter(|&name| seen.insert(name));
        Self::new(new.map(|name| MeshAxis { name: name.into(), size: 0 }).collect(), Vec::new())
    }
    /// Size of `axis`, which must be an axis of this mesh.
    #[inline]
    pub fn axis_size(&self, axis: AxisId) -> i64 {
        self.axes[axis.index()].size
    }
    /// Name of `axis`, which must be an axis of this mesh.
    pub fn axis_name(&self, axis: AxisId) -> &str {
        &self.axes[axis.index()].name
    }
    /// The axis called `name`.
    pub fn axis_by_name(&self, name: &str) -> Option<AxisId> {
        let sorted = &self.by_name.0;
        let position = if sorted.len() == self.axes.len() {
            let name_of = |axis: u32| &*self.axes[axis as usize].name;
            let at = sorted.partition_point(|&axis| name_of(axis) < name);
            sorted.get(at).filter(|&&axis| name_of(axis) == name).map(|&axis| axis as usize)
        } else {
            self.axes.iter().position(|axis| &*axis.name == name)
        };
        position.map(AxisId::from_index)
    }
    /// Number of devices; the verifier has checked that the product fits.
    pub fn num_devices(&self) -> i64 {
        self.axes.iter().map(|axis| axis.size).product()
    }
    /// Whether it has neither axes nor devices: a placeholder.
    pub fn is_empty(&self) -> bool {
        self.axes.is_empty() && self.device_ids.is_empty()
    }
    /// Number of devices, which is 0 for an empty mesh.
    pub fn device_count(&self) -> i64 {
        if self.is_empty() {
            return 0;
        }
        self.num_devices()
    }
    /// The device at `position` in row-major order of the axes, which must be below
    /// [`Mesh::device_count`].
    #[inline]
    pub fn device_at_position(&self, position: i64) -> i64 {
        let listed = usize::try_from(position).ok().and_then(|at| self.device_ids.get(at));
        listed.copied().unwrap_or(position)
    }
    /// The position of `device` in row-major order of the axes. Linear time if device ids are listed.
    pub fn position_of_device(&self, device: i64) -> Option<i64> {
        if self.device_ids.is_empty() {
            return (0..self.device_count()).contains(&device).then_some(device);
        }
        let position = self.device_ids.iter().position(|&id| id == device);
        position.and_then(|position| i64::try_from(position).ok())
    }
    /// Whether this is a single device given by its id.
    pub fn is_maximal(&self) -> bool {
        self.axes.is_empty() && self.device_ids.len() == 1
    }
    /// A copy with the default order of devices.
    #[must_use]
    pub fn without_device_ids(&self) -> Self {
        Self { device_ids: Vec::new(), ..self.clone() }
    }
}
