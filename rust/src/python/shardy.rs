//! The version of Shardy requested by callers.

use super::errors::raise_unlocated;
use super::user_code::{call_own, own_function};
use crate::error::{Code, Diagnostic};
use crate::shardy::{Change, Version};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

/// The version called `name`, a jaxlib release; without a name, that of the installed jaxlib.
///
/// # Errors
///
/// A `ShardcoreError` if `name` is not a known version.
pub(super) fn version(py: Python<'_>, name: Option<&str>) -> PyResult<Version> {
    let Some(name) = name else { return default_version(py) };
    Version::named(name).ok_or_else(|| {
        let known = Version::ALL.map(Version::name).join(", ");
        let message = format!("shardcore does not know the Shardy of jaxlib {name:?}");
        let problem = Diagnostic::new(Code::ShardyVersion, message);
        raise_unlocated(py, vec![problem.with_hint(format!("it knows those of {known}"))])
    })
}

/// The version of the installed jaxlib; the newest version if there is none.
pub(super) fn default_version(py: Python<'_>) -> PyResult<Version> {
    let installed = own_function(py, "shardcore.shardy", "installed_release", (), None)?;
    let release = installed.extract::<Option<PyBackedStr>>()?;
    Ok(release.and_then(|release| Version::of_release(&release)).unwrap_or(Version::NEWEST))
}

/// The names of all versions, oldest first.
#[pyfunction]
pub fn shardy_versions() -> Vec<&'static str> {
    Version::ALL.map(Version::name).to_vec()
}

/// The name of the default version.
#[pyfunction]
pub fn default_shardy(py: Python<'_>) -> PyResult<&'static str> {
    Ok(default_version(py)?.name())
}

/// For each version its changes, in sentences.
#[pyfunction]
pub fn shardy_changes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    call_own(py, || {
        let changes = PyDict::new(py);
        for version in Version::ALL {
            let of_version = Change::ALL.iter().filter(|change| change.since() == version);
            let texts: Vec<&str> = of_version.map(|change| change.text()).collect();
            changes.set_item(version.name(), texts)?;
        }
        Ok(changes)
    })
}
