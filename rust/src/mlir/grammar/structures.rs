//! Structures of `StableHLO` and CHLO: `#stablehlo.gather<offset_dims = [0], ...>`.

use super::position::Grammar;
use super::{dot_algorithm, mesh_axes};
use crate::error::Result;
use crate::mlir::cursor::syntax;

/// The kind of a field's value.
#[derive(Clone, Copy)]
enum Field {
    Ints,
    Int,
    Bool,
    Type,
    Float,
    Str,
    /// A mesh, or its symbol.
    Mesh,
    Attribute,
    /// `(1)2`
    SubAxis,
    /// A list of axes, which are structures of this name.
    List(&'static str),
}
use Field::{Attribute, Bool, Float, Int, Ints, List, Mesh, Str, SubAxis, Type};

/// The order of fields, and which are required.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Any order, all optional; a trailing comma is allowed.
    Free,
    /// Any order; the first fields of this number are required.
    Complete(usize),
    /// The order of the table; all are required.
    Ordered,
    /// The order of the table; the last one is required.
    UpToLast,
    /// The order of the table; the first one is required.
    FromFirst,
}
use Order::{Complete, Free, FromFirst, Ordered, UpToLast};

/// A structure: its name, the order of its fields, and the fields.
type Structure = (&'static str, Order, &'static [(&'static str, Field)]);

/// The structures by name.
const STRUCTURES: [Structure; 14] = [
    (
        "gather",
        Free,
        &[
            ("offset_dims", Ints),
            ("collapsed_slice_dims", Ints),
            ("operand_batching_dims", Ints),
            ("start_indices_batching_dims", Ints),
            ("start_index_map", Ints),
            ("index_vector_dim", Int),
        ],
    ),
    (
        "scatter",
        Free,
        &[
            ("update_window_dims", Ints),
            ("inserted_window_dims", Ints),
            ("input_batching_dims", Ints),
            ("scatter_indices_batching_dims", Ints),
            ("scatter_dims_to_operand_dims", Ints),
            ("index_vector_dim", Int),
        ],
    ),
    (
        "dot",
        Free,
        &[
            ("lhs_batching_dimensions", Ints),
            ("rhs_batching_dimensions", Ints),
            ("lhs_contracting_dimensions", Ints),
            ("rhs_contracting_dimensions", Ints),
        ],
    ),
    (
        "ragged_dot",
        Free,
        &[
            ("lhs_batching_dimensions", Ints),
            ("rhs_batching_dimensions", Ints),
            ("lhs_contracting_dimensions", Ints),
            ("rhs_contracting_dimensions", Ints),
            ("lhs_ragged_dimensions", Ints),
            ("rhs_group_dimensions", Ints),
        ],
    ),
    (
        "raw",
        Free,
        &[
            ("input_batch_dimension", Int),
            ("input_feature_dimension", Int),
            ("input_spatial_dimensions", Ints),
            ("kernel_input_feature_dimension", Int),
            ("kernel_output_feature_dimension", Int),
            ("kernel_spatial_dimensions", Ints),
            ("output_batch_dimension", Int),
            ("output_feature_dimension", Int),
            ("output_spatial_dimensions", Ints),
        ],
    ),
    ("channel_handle", Complete(2), &[("handle", Int), ("type", Int)]),
    (
        "output_operand_alias",
        Ordered,
        &[("output_tuple_indices", Ints), ("operand_index", Int), ("operand_tuple_indices", Ints)],
    ),
    (
        "dot_algorithm",
        Ordered,
        &[
            ("lhs_precision_type", Type),
            ("rhs_precision_type", Type),
            ("accumulation_type", Type),
            ("lhs_component_count", Int),
            ("rhs_component_count", Int),
            ("num_primitive_operations", Int),
            ("allow_imprecise_accumulation", Bool),
        ],
    ),
    (
        "result_accuracy",
        UpToLast,
        &[("atol", Float), ("rtol", Float), ("ulps", Int), ("mode", Attribute)],
    ),
    ("replica_group_mesh_axes", Complete(2), &[("mesh", Mesh), ("axes", List("axis_ref"))]),
    ("axis_ref", Complete(1), &[("name", Str), ("sub_axis_info", SubAxis)]),
    ("mesh_axis", Complete(2), &[("name", Str), ("size", Int)]),
    ("mesh", FromFirst, &[("axes", List("mesh_axis")), ("device_ids", Attribute)]),
    ("type_extensions", FromFirst, &[("bounds", Ints)]),
];

impl Grammar<'_, '_> {
    /// `<field = value, ...>` of the structure called `name`.
    pub fn structure(&mut self, name: &str) -> Result<()> {
        let structure = STRUCTURES.iter().find(|(known, ..)| *known == name);
        let Some(&(_, order, fields)) = structure else { return self.cursor.skip_body() };
        let start = self.cursor.pos;
        // After the word `raw`, the bracket is open already.
        if name != "raw" {
            self.cursor.expect(b'<')?;
        }
        match order {
            Free => self.free_fields(fields),
            Complete(least) => self.all_fields(least, fields),
            Ordered | UpToLast | FromFirst => self.ordered_fields(order, fields),
        }?;
        let body = self.cursor.since(start);
        let problem = match name {
            "dot_algorithm" => dot_algorithm::problem(body),
            "replica_group_mesh_axes" => mesh_axes::problem(body),
            _ => None,
        };
        match problem {
            Some(problem) => Err(syntax(self.cursor.span_since(start), problem).into()),
            None => Ok(()),
        }
    }
    /// Optional fields in any order; a trailing comma is allowed.
    fn free_fields(&mut self, fields: &[(&str, Field)]) -> Result<()> {
        let mut seen = Vec::new();
        while !self.cursor.eat(b'>') {
            let Some(index) = self.field_name(fields) else {
                let names: Vec<String> =
                    fields.iter().map(|(name, _)| format!("`{name}`")).collect();
                return Err(self.cursor.expected(&format!("one of: {}", names.join(", "))));
            };
            if seen.contains(&index) {
                let message = format!("duplicated `{}` entry", fields[index].0);
                return Err(syntax(self.cursor.here(), message).into());
            }
            seen.push(index);
            self.field(fields[index].1)?;
            if !self.cursor.eat(b',') {
                return self.cursor.expect(b'>');
            }
        }
        Ok(())
    }
    /// Fields in any order, the first `least` of which are required.
    fn all_fields(&mut self, least: usize, fields: &[(&str, Field)]) -> Result<()> {
        let mut seen = vec![false; fields.len()];
        loop {
            self.cursor.skip_space();
            let start = self.cursor.pos;
            let known = self.field_name(fields).filter(|&index| !seen[index]);
            let Some(index) = known else {
                self.cursor.pos = start;
                let name = self.cursor.name();
                if name.is_empty() {
                    return Err(self.cursor.expected("valid keyword"));
                }
                let message = format!("duplicate or unknown struct parameter name: {name}");
                return Err(syntax(self.cursor.span_since(start), message).into());
            };
            seen[index] = true;
            self.field(fields[index].1)?;
            if seen[..least].contains(&false) {
                self.cursor.expect(b',')?;
            } else if seen.iter().all(|&seen| seen) || !self.cursor.eat(b',') {
                return self.cursor.expect(b'>');
            }
        }
    }
    /// Fields in the order of the table.
    fn ordered_fields(&mut self, order: Order, fields: &[(&str, Field)]) -> Result<()> {
        let last = fields.len() - 1;
        for (index, &(name, field)) in fields.iter().enumerate() {
            if order == FromFirst && index > 0 && !self.cursor.eat(b',') {
                break;
            }
            if self.cursor.eat_keyword(name) {
                self.field(field)?;
                if order != FromFirst && index < last {
                    self.cursor.expect(b',')?;
                }
            } else if order != UpToLast || index == last {
                return Err(self.cursor.expected(&format!("'{name}'")));
            }
        }
        self.cursor.expect(b'>')
    }
    /// Reads the name of one of `fields`, if it is next.
    fn field_name(&mut self, fields: &[(&str, Field)]) -> Option<usize> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let word = self.cursor.name();
        let index = fields.iter().position(|(name, _)| *name == word);
        if index.is_none() {
            self.cursor.pos = start;
        }
        index
    }
    /// `= value`
    fn field(&mut self, field: Field) -> Result<()> {
        self.cursor.expect(b'=')?;
        match field {
            Ints => self.sizes(),
            Int => self.int(),
            Bool => self.boolean(),
            Type => self.ty(),
            Float => self.float(),
            Str if self.cursor.next_byte() == b'"' => self.cursor.string().map(|_| ()),
            Str => Err(self.cursor.expected("string")),
            Mesh => self.mesh(),
            Attribute => self.attribute(),
            SubAxis => self.sub_axis(),
            List(name) => self.list(b'[', b']', |grammar| {
                if grammar.cursor.next_byte() == b'#' {
                    return grammar.dialect_attribute();
                }
                grammar.structure(name)
            }),
        }
    }
    /// The symbol of a mesh, a mesh, or an alias of one.
    fn mesh(&mut self) -> Result<()> {
        if self.cursor.next_byte() == b'@' {
            return self.cursor.symbol().map(|_| ());
        }
        let start = self.cursor.pos;
        self.attribute()?;
        let text = self.cursor.since(start).trim_start();
        let is_alias = text.starts_with('#') && !text.contains(['.', '<']);
        if is_alias || text.starts_with("#stablehlo.mesh<") {
            return Ok(());
        }
        let message = "mesh must be a FlatSymbolRefAttr or MeshAttr";
        Err(syntax(self.cursor.span_since(start), message).into())
    }
    /// `true`, `false`, or an integer.
    fn boolean(&mut self) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        if matches!(self.cursor.name(), "true" | "false") {
            return Ok(());
        }
        self.cursor.pos = start;
        self.int()
    }
    fn float(&mut self) -> Result<()> {
        use super::number::Number;
        self.cursor.skip_space();
        let start = self.cursor.pos;
        match Number::read(self.cursor) {
            Some(Number::Float(_) | Number::Hex(..)) => Ok(()),
            Some(Number::Integer(..)) => {
                let message = "unexpected decimal integer literal for a floating point value";
                Err(syntax(self.cursor.span_since(start), message)
                    .with_hint("add a trailing dot to make the literal a float")
                    .into())
            }
            None => Err(self.cursor.expected("floating point literal")),
        }
    }
    /// `(1)2`.
    pub(super) fn sub_axis(&mut self) -> Result<()> {
        self.cursor.expect(b'(')?;
        self.int()?;
        self.cursor.expect(b')')?;
        self.int()
    }
    /// `[1, ?]`.
    fn sizes(&mut self) -> Result<()> {
        self.list(b'[', b']', Self::size)
    }
    /// An integer, or `?`.
    pub(super) fn size(&mut self) -> Result<()> {
        if self.cursor.eat(b'?') {
            return Ok(());
        }
        self.int()
    }
}
