//! Looks up the mesh of a sharding that is parsed outside a program.

use super::cursor::Cursor;
use super::MeshScope;
use crate::index::MeshId;
use crate::mesh::Mesh;
use crate::shardy::Version;
use std::sync::Arc;

/// The id of the only mesh.
const MESH: MeshId = MeshId::new(0);

/// A scope for one sharding outside a program.
pub struct StandaloneScope<'a> {
    /// Returns the mesh with a symbol; `None` if there is none.
    resolve: &'a dyn Fn(&str) -> Option<Arc<Mesh>>,
    /// The known symbols, for hints.
    symbols: &'a [String],
    mesh: Arc<Mesh>,
    symbol: Option<String>,
    shardy: Version,
}

impl<'a> StandaloneScope<'a> {
    /// A scope in which `resolve` returns the mesh with a symbol, one of `symbols`, for text of
    /// version `shardy`.
    pub fn new(
        resolve: &'a dyn Fn(&str) -> Option<Arc<Mesh>>,
        symbols: &'a [String],
        shardy: Version,
    ) -> Self {
        Self { resolve, symbols, mesh: Arc::default(), symbol: None, shardy }
    }
    /// The mesh of the parsed sharding, and its symbol.
    pub fn into_mesh(self) -> (Arc<Mesh>, Option<String>) {
        (self.mesh, self.symbol)
    }
    /// A mesh of unknown sizes with every axis that a sharding with this text may refer to. It is
    /// enough to parse and print the sharding, and to verify the properties that do not depend on
    /// sizes.
    pub fn mesh_of_names(text: &str) -> Mesh {
        let mut cursor = Cursor::new(text, 0);
        let mut names = Vec::new();
        while let Some(skipped) = cursor.rest().find('"') {
            cursor.skip(skipped);
            let Ok((name, _)) = cursor.string() else { break };
            names.push(name);
        }
        Mesh::of_names(names.iter().map(String::as_str))
    }
}

impl MeshScope for StandaloneScope<'_> {
    fn by_symbol(&mut self, symbol: &str) -> Option<MeshId> {
        self.mesh = (self.resolve)(symbol)?;
        self.symbol = Some(symbol.to_owned());
        Some(MESH)
    }
    fn inlined(&mut self, mesh: Mesh) -> MeshId {
        self.mesh = Arc::new(mesh);
        self.symbol = None;
        MESH
    }
    fn mesh(&self, _id: MeshId) -> &Mesh {
        &self.mesh
    }
    fn symbol(&self, _id: MeshId) -> Option<&str> {
        self.symbol.as_deref()
    }
    fn shardy(&self) -> Version {
        self.shardy
    }
    fn symbols(&self) -> Vec<&str> {
        self.symbols.iter().map(String::as_str).collect()
    }
}
