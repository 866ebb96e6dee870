"""Fuzz targets: `fuzz.rs` for what parses, `surfaces` for Python and the command line."""
