//! The meshes of a program: named ones, and those inlined in shardings.

use crate::index::{IdRange, IdVec, MeshId, StrId};
use crate::mesh::Mesh;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A row of the mesh table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramMesh {
    /// The `sdy.mesh` symbol, `None` for a mesh written inside a sharding.
    pub symbol: Option<StrId>,
    /// Axes and devices; shared, as a mesh may list thousands of devices.
    pub mesh: Arc<Mesh>,
}

/// All meshes, looked up by symbol or, for inlined ones, by value.
#[derive(Clone, Debug, Default)]
pub struct MeshTable {
    rows: IdVec<MeshId, ProgramMesh>,
    named: FxHashMap<StrId, MeshId>,
    inlined: FxHashMap<Arc<Mesh>, MeshId>,
}

impl MeshTable {
    /// Adds a mesh called `symbol`.
    pub fn add(&mut self, symbol: StrId, mesh: Mesh) -> MeshId {
        let id = self.rows.push(ProgramMesh { symbol: Some(symbol), mesh: Arc::new(mesh) });
        self.named.entry(symbol).or_insert(id);
        id
    }
    /// The mesh without a symbol that is equal to `mesh`, new if there is none.
    pub fn inlined(&mut self, mesh: &Mesh) -> MeshId {
        if let Some(&id) = self.inlined.get(mesh) {
            return id;
        }
        let mesh = Arc::new(mesh.clone());
        let id = self.rows.push(ProgramMesh { symbol: None, mesh: mesh.clone() });
        self.inlined.insert(mesh, id);
        id
    }
    /// The mesh called `symbol`.
    pub fn named(&self, symbol: StrId) -> Option<MeshId> {
        self.named.get(&symbol).copied()
    }
    /// Sets the axes and devices of mesh `id`, which has a symbol.
    pub fn define(&mut self, id: MeshId, mesh: Mesh) {
        self.rows[id].mesh = Arc::new(mesh);
    }
    /// Removes the symbol of mesh `id` and returns it.
    pub fn take_symbol(&mut self, id: MeshId) -> Option<StrId> {
        let symbol = self.rows[id].symbol.take()?;
        if self.named(symbol) == Some(id) {
            self.named.remove(&symbol);
        }
        // Of equal meshes the first one is looked up.
        let first = self.inlined.entry(self.rows[id].mesh.clone()).or_insert(id);
        *first = id.min(*first);
        Some(symbol)
    }
    /// All ids in order.
    pub fn ids(&self) -> IdRange<MeshId> {
        self.rows.ids()
    }
    /// All meshes in order.
    pub fn iter(&self) -> std::slice::Iter<'_, ProgramMesh> {
        self.rows.iter()
    }
    /// How many meshes there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl std::ops::Index<MeshId> for MeshTable {
    type Output = ProgramMesh;
    #[inline]
    fn index(&self, id: MeshId) -> &ProgramMesh {
        &self.rows[id]
    }
}
