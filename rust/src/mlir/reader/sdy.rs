//! Shardy's ops in their own syntax.

use crate::attribute::{self, Form};
use crate::error::{Result, Span};
use crate::ir::OpKind;
use crate::mlir::meaning::resolve::in_own_syntax;
use crate::mlir::meaning::target::Target;
use crate::mlir::reader::parser::{After, Building, Parser, PendingArg};

impl Parser<'_> {
    /// Parses an op of the `sdy` dialect from behind its name on.
    pub(in crate::mlir) fn parse_sdy(&mut self, building: Building) -> Result<()> {
        match building.name.kind {
            OpKind::Mesh => self.parse_mesh(building),
            OpKind::ManualComputation => self.parse_manual_computation(building),
            OpKind::NamedComputation => self.parse_named_computation(building),
            _ => self.parse_tensor_op(building),
        }
    }
    /// Parses `@name = <["x"=2]> {attrs}`.
    fn parse_mesh(&mut self, mut building: Building) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let op_name = self.program.strings.get(building.name.id);
        self.cursor.symbol().map_err(|error| in_own_syntax(op_name, error))?;
        let name = self.cursor.span_since(start);
        self.cursor.expect(b'=')?;
        let mesh = self.parse_stripped(&building, Some(Form::Mesh))?;
        self.parse_optional_op_dict(&mut building)?;
        self.note_mesh(building.op, name, mesh)?;
        self.finish(building)
    }
    /// Steps over `keyword` of the op's own syntax.
    fn own_keyword(&mut self, building: &Building, keyword: &str) -> Result<()> {
        let name = self.program.strings.get(building.name.id);
        self.cursor.expect_keyword(keyword).map_err(|error| in_own_syntax(name, error))
    }
    /// Reads an attribute that may have lost its `#dialect.name`.
    fn parse_stripped(&mut self, building: &Building, form: Option<Form>) -> Result<Span> {
        self.cursor.skip_space();
        let start = self.cursor.pos;
        let read = match self.cursor.peek() {
            b'<' | b'[' | b'{' => self.cursor.skip_balanced(),
            b'#' => self.grammar().attribute(),
            b'-' | b'0'..=b'9' => self.cursor.integer().map(|_| ()),
            _ if !self.cursor.name().is_empty() => Ok(()),
            _ => Err(self.cursor.expected("attribute value")),
        };
        if let Err(error) = read {
            // Its own parser knows better what is wrong.
            let text = &self.cursor.text()[start..];
            let found = form.and_then(|form| attribute::syntax_error(form, text, start as u32));
            let name = self.program.strings.get(building.name.id);
            return Err(found.map_or(error, |error| in_own_syntax(name, error)));
        }
        Ok(self.cursor.span_since(start))
    }
    /// Parses ops of one tensor: `axes %x name=attr {attrs} : type`, each part where the op has it.
    fn parse_tensor_op(&mut self, mut building: Building) -> Result<()> {
        let start = self.cursor.pos;
        let kind = building.name.kind;
        if matches!(self.cursor.next_byte(), b'[' | b'{' | b'#') {
            let form = match kind {
                OpKind::AllToAll => Form::AllToAll,
                OpKind::AllReduce | OpKind::ReplicatedToUnreduced => Form::Axes,
                _ => Form::AxesPerDim,
            };
            building.payload = self.parse_stripped(&building, Some(form))?;
        }
        self.parse_operand()?;
        match kind {
            OpKind::ShardingConstraint | OpKind::Reshard => {
                building.sharding = Some(self.parse_stripped(&building, Some(Form::Sharding))?);
            }
            OpKind::DataFlowEdge => {
                let end = self.cursor.pos;
                if self.cursor.eat_keyword("sharding") {
                    self.cursor.expect(b'=')?;
                    building.sharding = Some(self.parse_stripped(&building, Some(Form::Sharding))?);
                } else {
                    self.cursor.pos = end;
                }
            }
            OpKind::ShardingGroup => {
                self.own_keyword(&building, "group_id")?;
                self.cursor.expect(b'=')?;
                building.payload = self.parse_stripped(&building, None)?;
            }
            OpKind::PropagationBarrier => {
                self.own_keyword(&building, "allowed_direction")?;
                self.cursor.expect(b'=')?;
                if self.cursor.next_byte().is_ascii_digit() {
                    return Err(self.cursor.expected("a direction"));
                }
                building.payload = self.parse_stripped(&building, None)?;
            }
            OpKind::FuncDataFlowEdge => {}
            _ => {
                self.own_keyword(&building, "out_sharding")?;
                self.cursor.expect(b'=')?;
                building.sharding = Some(self.parse_stripped(&building, Some(Form::Sharding))?);
            }
        }
        building.syntax = self.cursor.span_since(start);
        self.parse_optional_op_dict(&mut building)?;
        self.cursor.expect(b':')?;
        let ty = self.parse_type()?;
        building.num_inputs = 1;
        self.types.push(ty);
        if kind != OpKind::ShardingGroup {
            self.types.push(ty);
        }
        self.finish(building)
    }
    /// Parses `(%a) in_shardings=[...] out_shardings=[...] manual_axes={...} (%x: type) {`.
    fn parse_manual_computation(&mut self, mut building: Building) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.expect(b'(')?;
        self.parse_operands_to(b')')?;
        self.own_keyword(&building, "in_shardings")?;
        self.cursor.expect(b'=')?;
        let inputs = self.parse_stripped(&building, Some(Form::Shardings))?;
        self.targets.push((Target::RegionArgs(building.op), inputs));
        self.own_keyword(&building, "out_shardings")?;
        self.cursor.expect(b'=')?;
        building.sharding = Some(self.parse_stripped(&building, Some(Form::Shardings))?);
        self.own_keyword(&building, "manual_axes")?;
        self.cursor.expect(b'=')?;
        building.payload = self.parse_stripped(&building, Some(Form::ManualAxes))?;
        building.syntax = self.cursor.span_since(start);
        self.parse_body_args()?;
        self.open_region(building, After::Signature)
    }
    /// Parses `<"name">(%a) in_shardings=[...] out_shardings=[...] (%x: type) {`.
    fn parse_named_computation(&mut self, mut building: Building) -> Result<()> {
        let start = self.cursor.pos;
        self.cursor.expect(b'<')?;
        self.cursor.skip_space();
        let at = self.cursor.pos;
        if self.cursor.peek() != b'"' {
            return Err(self.cursor.expected("the name in quotes"));
        }
        self.cursor.string()?;
        let name = self.cursor.span_since(at);
        self.cursor.expect(b'>')?;
        self.cursor.expect(b'(')?;
        self.parse_operands_to(b')')?;
        let mut inputs = None;
        if self.cursor.eat_keyword("in_shardings") {
            self.cursor.expect(b'=')?;
            inputs = Some(self.parse_stripped(&building, Some(Form::Shardings))?);
        }
        if self.cursor.eat_keyword("out_shardings") {
            self.cursor.expect(b'=')?;
            building.sharding = Some(self.parse_stripped(&building, Some(Form::Shardings))?);
        }
        building.syntax = self.cursor.span_since(start);
        self.note_named_computation(&building, name, inputs);
        self.parse_body_args()?;
        self.open_region(building, After::Signature)
    }
    /// Reads `(%x: type {attrs} loc(...), ...)`.
    fn parse_body_args(&mut self) -> Result<()> {
        self.cursor.expect(b'(')?;
        if self.cursor.eat(b')') {
            return Ok(());
        }
        loop {
            self.cursor.skip_space();
            let offset = self.cursor.pos as u32;
            let name = self.parse_ssa_name()?;
            self.cursor.expect(b':')?;
            let ty = self.parse_type()?;
            if self.cursor.next_byte() == b'{' {
                self.cursor.skip_balanced()?;
            }
            self.skip_location()?;
            self.args.push(PendingArg { name, offset, ty });
            if !self.cursor.eat(b',') {
                return self.cursor.expect(b')');
            }
        }
    }
}
