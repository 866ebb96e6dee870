//! Meshes: named axes with sizes over a list of devices.
//!
//! A mesh `<["x"=2, "y"=4]>` places device `2*i..` row-major unless `device_ids` says otherwise. A
//! mesh without axes and with one device id is *maximal*: everything lives on that device. A mesh
//! without axes and without device ids is empty.
//!
//! Source: Shardy's sharding representation, "Mesh".

use crate::index::{AxisId, Id};

/// One axis of a mesh.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MeshAxis {
    /// Its name, unique in the mesh.
    pub name: Box<str>,
    /// Number of devices along it.
    pub size: i64,
}

/// Axes in major-to-minor order, and the devices where these are not `0..n`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Mesh {
    /// The axes, major to minor.
    pub axes: Vec<MeshAxis>,
    /// Device ids in row-major order of the axes; empty means `0..n`.
    pub device_ids: Vec<i64>,
}

impl Mesh {
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
        self.axes.iter().position(|axis| &*axis.name == name).map(AxisId::from_index)
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
    /// Where `device` stands in row-major order of the axes. Linear if device ids are listed.
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
    /// The same mesh with the default order of devices.
    #[must_use]
    pub fn without_device_ids(&self) -> Self {
        Self { axes: self.axes.clone(), device_ids: Vec::new() }
    }
}
