//! Syntax errors in attributes of known form, for attributes whose end cannot be found.

use super::axis::{read_manual_axes, AxisReader};
use super::cursor::Cursor;
use super::mesh::read_mesh;
use super::parameter::is_of_syntax;
use super::propagation_edges::parse_propagation_edges;
use super::rule_reader::read_rule;
use super::sharding::{read_sharding, read_shardings};
use super::StandaloneScope;
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::shardy::Version;
use std::sync::Arc;

/// Attributes in the custom syntax of ops, without their names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// `<["x"=2]>`
    Mesh,
    /// `<@mesh, [{"x"}]>`
    Sharding,
    /// `[<@mesh, [{"x"}]>]`
    Shardings,
    /// `{"x"}`
    Axes,
    /// `[{"x"}, {}]`
    AxesPerDim,
    /// `[{"x"}: 0->1]`
    AllToAll,
    /// `{"x"}`
    ManualAxes,
    /// `<([i])->([i]) {i=8}>`
    Rule,
    /// `<[{step-0 = [{"x" = operand-0 -> [result-0]}]}]>`
    Edges,
}

impl Form {
    /// The character that attributes of this form start with in the custom syntax of ops.
    pub const fn open(self) -> u8 {
        match self {
            Self::Mesh | Self::Sharding | Self::Rule | Self::Edges => b'<',
            Self::Shardings | Self::AxesPerDim | Self::AllToAll => b'[',
            Self::Axes | Self::ManualAxes => b'{',
        }
    }
    /// The form of Shardy's attribute called `name`; `None` for attributes that occur only inside
    /// others.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "mesh" => Some(Self::Mesh),
            "sharding" => Some(Self::Sharding),
            "sharding_per_value" => Some(Self::Shardings),
            "axis_ref_list" => Some(Self::Axes),
            "list_of_axis_ref_lists" => Some(Self::AxesPerDim),
            "all_to_all_param_list" => Some(Self::AllToAll),
            "op_sharding_rule" => Some(Self::Rule),
            "propagation_edges" => Some(Self::Edges),
            _ => None,
        }
    }
}

/// The syntax error in the attribute at the start of `text`, if any. `text`, at byte `base` of the
/// program's text, may continue after the attribute; `shardy` is its version.
pub fn syntax_error(form: Form, text: &str, base: u32, shardy: Version) -> Option<Error> {
    let mut cursor = Cursor::new(text, base);
    // Whether meshes and axes exist is not checked here.
    let resolve = |_: &str| Some(Arc::default());
    let mut scope = StandaloneScope::new(&resolve, &[], shardy);
    let mesh = Mesh::default();
    let mut axes = AxisReader::new(&mesh);
    let read: Result<()> = match form {
        Form::Mesh => read_mesh(&mut cursor).map(drop),
        Form::Sharding => read_sharding(&mut cursor, &mut scope).map(drop),
        Form::Shardings => read_shardings(&mut cursor, &mut scope).map(drop),
        Form::Axes => axes.braced(&mut cursor).map(drop),
        Form::AxesPerDim => axes.per_dim(&mut cursor).map(drop),
        Form::AllToAll => axes.all_to_all(&mut cursor).map(drop),
        Form::ManualAxes => read_manual_axes(&mut cursor).map(drop),
        Form::Rule => read_rule(text, base, 0, shardy).map(drop),
        Form::Edges => parse_propagation_edges(text, base).map_or(Ok(()), |edges| edges.map(drop)),
    };
    read.err().filter(is_of_syntax)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found_without_the_end() {
        for (form, sound, broken, message) in [
            (Form::Mesh, r#"<["x"=2]> {"#, r#"<["x"=2> {"#, "expected ']', found '>'"),
            (
                Form::Sharding,
                r#"<@m, [{"x"}]>, ("#,
                r#"<@m, [{"x"]>, ("#,
                "expected ',', found ']'",
            ),
            (Form::Shardings, "[<@m, []>] out", "[<@m, [>] out", "expected '{', found '>'"),
            (Form::Axes, r#"{"x"} %0"#, r#"{"x" %0"#, "expected '}', found '%'"),
            (Form::AxesPerDim, r#"[{"x"}] %0"#, r#"[{"x"} %0"#, "expected ']', found '%'"),
            (Form::AllToAll, r#"[{"x"}: 0->1] %0"#, r#"[{"x"}: 0-1]"#, "expected '->', found '-'"),
            (Form::ManualAxes, r#"{"x"} ("#, "{x} (", "expected attribute value, found 'x'"),
        ] {
            assert_eq!(syntax_error(form, sound, 0, Version::NEWEST), None);
            let error = syntax_error(form, broken, 0, Version::NEWEST).unwrap();
            assert_eq!(error.diagnostics[0].message, message);
        }
    }
}
