//! Looks up the names of meshes and aliases in an attribute.

use super::quote::write_symbol;
use crate::error::{Code, Diagnostic};
use crate::index::MeshId;
use crate::ir::Program;
use crate::mesh::Mesh;
use crate::shardy::Version;
use crate::suggest;

/// The meshes and aliases that names in an attribute refer to.
pub trait MeshScope {
    /// The mesh called `symbol` (without `@`).
    fn by_symbol(&mut self, symbol: &str) -> Option<MeshId>;
    /// The id of an inlined mesh.
    fn inlined(&mut self, mesh: Mesh) -> MeshId;
    /// The mesh of `id`.
    fn mesh(&self, id: MeshId) -> &Mesh;
    /// The symbol of `id`, `None` for an inlined mesh.
    fn symbol(&self, id: MeshId) -> Option<&str>;
    /// The symbols of meshes, for hints; only the first ones if there are many.
    fn symbols(&self) -> Vec<&str> {
        Vec::new()
    }
    /// The text of attribute alias `name` (with `#`), and its offset.
    fn alias(&self, _name: &str) -> Option<(String, u32)> {
        None
    }
    /// The version of Shardy by which the text is read.
    fn shardy(&self) -> Version;
    /// The error that there is no mesh called `symbol`.
    fn unknown_mesh(&self, symbol: &str) -> Diagnostic {
        let mut message = "unknown mesh: ".to_owned();
        write_symbol(&mut message, symbol);
        let mut diagnostic = Diagnostic::new(Code::UnknownMesh, message);
        diagnostic.hint = suggest::hint(symbol, self.symbols(), |name| {
            let mut quoted = String::new();
            write_symbol(&mut quoted, name);
            quoted
        });
        diagnostic
    }
}

impl MeshScope for Program {
    fn by_symbol(&mut self, symbol: &str) -> Option<MeshId> {
        self.mesh_by_symbol(self.strings().find(symbol)?)
    }
    fn inlined(&mut self, mesh: Mesh) -> MeshId {
        self.inlined_mesh(&mesh)
    }
    fn mesh(&self, id: MeshId) -> &Mesh {
        &self.meshes()[id].mesh
    }
    fn symbol(&self, id: MeshId) -> Option<&str> {
        self.meshes()[id].symbol.map(|symbol| self.str(symbol))
    }
    fn symbols(&self) -> Vec<&str> {
        let symbols = self.meshes().ids().filter_map(|id| self.symbol(id));
        symbols.take(suggest::MAX_CANDIDATES).collect()
    }
    fn alias(&self, name: &str) -> Option<(String, u32)> {
        let span = Self::alias(self, self.strings().find(name)?)?;
        Some((self.text().get(span).to_owned(), span.start))
    }
    fn shardy(&self) -> Version {
        Self::shardy(self)
    }
}
