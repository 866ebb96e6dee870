//! The generic form, `"dialect.op"(%a)[^bb]<{props}>({regions}) {attrs} : (types) -> types`, and what
//! it says of ops that have fields of their own here.

use crate::error::{Code, Diagnostic, Result, Span};
use crate::index::TypeId;
use crate::ir::{Attr, OpKind};
use crate::mlir::meaning::target::Target;
use crate::mlir::reader::parser::{After, Building, Parser};

impl<'a> Parser<'a> {
    /// Parses an op from its operands on; the name has been read.
    pub(in crate::mlir) fn parse_generic(&mut self, mut building: Building) -> Result<()> {
        let start = self.cursor.pos as u32;
        self.cursor.expect(b'(')?;
        self.parse_operands_to(b')')?;
        if self.cursor.next_byte() == b'[' {
            self.parse_successors()?;
        }
        if self.cursor.eat(b'<') {
            if self.cursor.next_byte() == b'{' {
                let dict = self.parse_dict()?;
                self.place_dict(&mut building, &dict);
            } else {
                self.parse_value()?;
            }
            self.cursor.expect(b'>')?;
        }
        building.syntax = self.cursor.span_since(start as usize);
        if self.cursor.eat(b'(') {
            return self.open_region(building, After::Generic);
        }
        self.parse_generic_tail(building)
    }
    /// Parses the rest of the generic form after its regions.
    pub(in crate::mlir) fn parse_generic_tail(&mut self, mut building: Building) -> Result<()> {
        let end = self.cursor.pos as u32;
        if self.cursor.next_byte() == b'{' {
            let dict = self.parse_dict()?;
            building.dict = dict.span;
            self.place_dict(&mut building, &dict);
        } else {
            building.dict = Span::new(end, end);
        }
        self.cursor.expect(b':')?;
        self.parse_signature_types(&mut building)?;
        self.finish(building)
    }
    /// Reads `(types) -> types` onto the stack of types.
    pub(in crate::mlir) fn parse_signature_types(&mut self, building: &mut Building) -> Result<()> {
        self.cursor.expect(b'(')?;
        let mut types = std::mem::take(&mut self.types);
        let parsed = self.parse_signature_types_to(building, &mut types);
        self.types = types;
        parsed
    }
    fn parse_signature_types_to(
        &mut self,
        building: &mut Building,
        types: &mut Vec<TypeId>,
    ) -> Result<()> {
        self.parse_type_list_to(b')', types)?;
        building.num_inputs = types.len() - building.types;
        self.cursor.expect_arrow()?;
        self.parse_results(types)
    }

    /// Takes attribute `name` of the op off the stack of attributes.
    pub(in crate::mlir) fn take_attr(&mut self, building: &Building, name: &str) -> Option<Span> {
        let id = self.program.strings.find(name)?;
        let at = self.attrs[building.attrs..].iter().position(|attr| attr.name == id)?;
        Some(self.attrs.remove(building.attrs + at).value)
    }
    fn require_attr(&mut self, building: &Building, name: &str) -> Result<Span> {
        self.take_attr(building, name).ok_or_else(|| {
            let op = self.program.strings.get(building.name.id);
            let message = format!("{op} needs attribute '{name}'");
            Diagnostic::new(Code::InvalidOp, message).at(self.name_span(building)).into()
        })
    }
    /// Moves the attributes that stand for fields of an op in generic form to these fields.
    pub(in crate::mlir) fn take_inherent(&mut self, building: &mut Building) -> Result<()> {
        match building.name.kind {
            OpKind::Module => {
                if let Some(name) = self.take_attr(building, "sym_name") {
                    self.define_symbol(building.op, name)?;
                }
            }
            OpKind::Func => return self.take_function(building),
            OpKind::Call => {
                let callee = self.require_attr(building, "callee")?;
                self.note_call(building.op, callee);
            }
            OpKind::Mesh => {
                let name = self.require_attr(building, "sym_name")?;
                let mesh = self.require_attr(building, "mesh")?;
                self.note_mesh(building.op, name, mesh)?;
            }
            OpKind::ShardingConstraint | OpKind::Reshard => {
                building.sharding = Some(self.require_attr(building, "sharding")?);
            }
            OpKind::DataFlowEdge => building.sharding = self.take_attr(building, "sharding"),
            OpKind::ShardingGroup => {
                building.payload = self.require_attr(building, "group_id")?;
            }
            OpKind::PropagationBarrier => {
                building.payload = self.require_attr(building, "allowed_direction")?;
            }
            OpKind::ManualComputation => {
                let inputs = self.require_attr(building, "in_shardings")?;
                let outputs = self.require_attr(building, "out_shardings")?;
                let axes = self.require_attr(building, "manual_axes")?;
                self.targets.push((Target::RegionArgs(building.op), inputs));
                building.sharding = Some(outputs);
                building.payload = axes;
            }
            OpKind::NamedComputation => {
                let inputs = self.take_attr(building, "in_shardings");
                building.sharding = self.take_attr(building, "out_shardings");
                let name = self.require_attr(building, "name")?;
                self.note_named_computation(building, name, inputs);
            }
            _ => {
                if let Some(axes) = axes_attr(building.name.kind) {
                    building.sharding = Some(self.require_attr(building, "out_sharding")?);
                    if !axes.is_empty() {
                        building.payload = self.require_attr(building, axes)?;
                    }
                }
            }
        }
        Ok(())
    }
    /// What is between the quotes of a string attribute, or the name of a symbol reference.
    pub(in crate::mlir) fn attr_name(&self, span: Span) -> &'a str {
        let text = self.text_at(span);
        let text = text.strip_prefix('@').unwrap_or(text);
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
    }
    /// The text at `span`.
    pub(in crate::mlir) fn text_at(&self, span: Span) -> &'a str {
        self.cursor.text().get(span.start as usize..span.end as usize).unwrap_or("")
    }
    /// The attributes above `base`.
    pub(in crate::mlir) fn attrs_from(&self, base: usize) -> &[Attr] {
        &self.attrs[base..]
    }
}

/// The attribute that holds the axes of a collective, empty if it has none; `None` for other ops.
pub(in crate::mlir) const fn axes_attr(kind: OpKind) -> Option<&'static str> {
    Some(match kind {
        OpKind::AllGather => "gathering_axes",
        OpKind::AllSlice => "slicing_axes",
        OpKind::AllToAll => "params",
        OpKind::CollectivePermute => "",
        OpKind::AllReduce => "reduction_axes",
        OpKind::ReduceScatter => "reduce_scatter_axes",
        OpKind::ShardedToUnreduced | OpKind::ReplicatedToUnreduced => "axes",
        _ => return None,
    })
}
