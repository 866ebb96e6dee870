//! Mesh arguments of shardings.

use super::arguments::{pairs, MAX_ITEMS};
use super::mesh::PyMesh;
use crate::attribute::StandaloneScope;
use crate::mesh::Mesh;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};
use std::sync::Arc;

/// A mesh argument: a mesh, or only its symbol.
pub(super) struct MeshArgument {
    pub(super) mesh: Option<Arc<Mesh>>,
    pub(super) symbol: Option<Arc<str>>,
}

impl MeshArgument {
    pub(super) fn new(mesh: &Bound<'_, PyAny>, mesh_name: Option<&str>) -> PyResult<Self> {
        let bare = |name: &str| -> Arc<str> { name.strip_prefix('@').unwrap_or(name).into() };
        if let Ok(mesh) = mesh.cast::<PyMesh>() {
            return Ok(Self { mesh: Some(mesh.get().mesh.clone()), symbol: mesh_name.map(bare) });
        }
        let name = mesh.cast::<PyString>();
        let name = name.map_err(|_| PyTypeError::new_err("mesh is a Mesh or the name of one"))?;
        if mesh_name.is_some() {
            return Err(PyTypeError::new_err("mesh_name goes with a Mesh, not with a name"));
        }
        Ok(Self { mesh: None, symbol: Some(bare(name.to_str()?)) })
    }
}

/// The mesh argument of a parser: a mesh, or meshes by symbol.
pub(super) enum Meshes {
    Unknown,
    Any(Arc<Mesh>),
    ByName(Vec<(String, Arc<Mesh>)>),
}

impl Meshes {
    pub(super) fn new(mesh: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(mesh) = mesh else { return Ok(Self::Unknown) };
        if let Ok(mesh) = mesh.cast::<PyMesh>() {
            return Ok(Self::Any(mesh.get().mesh.clone()));
        }
        let mapping = mesh.cast::<PyMapping>();
        let mapping = mapping
            .map_err(|_| PyTypeError::new_err("mesh is a Mesh, or a mapping from names to them"))?;
        let meshes = pairs(mapping, "meshes", MAX_ITEMS, |item| {
            let (name, mesh): (String, PyMesh) = item.extract()?;
            Ok((name.strip_prefix('@').unwrap_or(&name).to_owned(), mesh.mesh))
        })?;
        Ok(Self::ByName(meshes))
    }
    pub(super) fn find(&self, symbol: &str, text: &str) -> Option<Arc<Mesh>> {
        match self {
            Self::Unknown => Some(Arc::new(StandaloneScope::mesh_of_names(text))),
            Self::Any(mesh) => Some(mesh.clone()),
            Self::ByName(meshes) => {
                let found = meshes.iter().find(|(name, _)| name == symbol);
                found.map(|(_, mesh)| mesh.clone())
            }
        }
    }
    pub(super) fn symbols(&self) -> Vec<String> {
        match self {
            Self::ByName(meshes) => meshes.iter().map(|(name, _)| name.clone()).collect(),
            _ => Vec::new(),
        }
    }
}
