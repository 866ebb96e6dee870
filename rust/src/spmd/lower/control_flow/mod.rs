//! Functions, calls, branches, loops, scans and manual computations.

pub(super) mod branches_and_loops;
pub(super) mod functions;
pub(super) mod manual_callees;
pub(super) mod manual_computations;
pub(super) mod scan_bodies;
