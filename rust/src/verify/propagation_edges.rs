//! Checks the records of propagation on ops: `sdy.propagation_edges` attributes and lists of them.

use super::Verifier;
use crate::attribute::{
    parse_propagation_edges, split_array, verify_propagation_edges, EdgeValueRef, PropagationStep,
};
use crate::error::{Code, Result, Span};
use crate::index::{MeshId, OpId, StrId, ValueId};
use crate::ir::{Attr, AttrRange, OpKind, Program};
use crate::shardy::Change;

const ONE: &str = "sdy.propagation_edges";
const LISTS: [&str; 2] = ["sdy.result_propagation_edges", "sdy.block_arg_propagation_edges"];

/// The interned names of those attributes.
#[derive(Clone, Copy, Default)]
pub(super) struct Names {
    one: Option<StrId>,
    lists: [Option<StrId>; 2],
}

impl Names {
    pub fn new(program: &Program) -> Self {
        Self {
            one: program.strings().find(ONE),
            lists: LISTS.map(|name| program.strings().find(name)),
        }
    }
    pub fn is_none(self) -> bool {
        self.one.is_none() && self.lists == [None; 2]
    }
}

impl Verifier<'_> {
    /// Checks the recorded propagation edges of `op`.
    pub(super) fn propagation_edges(&mut self, op: OpId) {
        for index in 0..self.program.op_attrs(op).len() {
            let attr = self.program.op_attrs(op)[index];
            if Some(attr.name) == self.names.one {
                self.edges_of_op(op, attr.value);
            } else if self.names.lists.contains(&Some(attr.name)) {
                self.edges_of_owners(op, attr.value);
            }
        }
        if let Some(func) = self.program.function_of(op).get() {
            let ports = self.program.func_args(func).iter().chain(self.program.func_results(func));
            let ranges: Vec<AttrRange> = ports.map(|port| port.attrs).collect();
            let one = self.names.one;
            for range in ranges {
                let is_one = |attr: &&Attr| Some(attr.name) == one;
                let attr = self.program.attr_list(range).iter().find(is_one).copied();
                // Other attributes are checked only if their text starts like this attribute.
                let read = attr.and_then(|attr| Some((self.read(attr.value)?, attr.value)));
                if let Some((read, span)) = read {
                    self.valid_edges(read, span);
                }
            }
        }
    }

    /// The edges parsed from the text at `span`, aliases resolved.
    fn read(&self, span: Span) -> Option<Result<Vec<PropagationStep>>> {
        let text = self.program.text().get(span);
        let alias = self.program.strings().find(text.trim());
        let target = alias.and_then(|alias| self.program.alias(alias)).unwrap_or(span);
        parse_propagation_edges(self.program.text().get(target), target.start)
    }

    /// The edges that were read at `span`; `None` if there are errors that do not depend on the op,
    /// which are reported.
    fn valid_edges(
        &mut self,
        read: Result<Vec<PropagationStep>>,
        span: Span,
    ) -> Option<Vec<PropagationStep>> {
        let problems = match read {
            Ok(steps) => {
                let problems = verify_propagation_edges(&steps, span);
                if problems.is_empty() {
                    return Some(steps);
                }
                problems
            }
            Err(error) => error.diagnostics,
        };
        self.diagnostics.extend(problems);
        None
    }

    fn edges_of_op(&mut self, op: OpId, span: Span) {
        let Some(read) = self.read(span) else {
            let message = "should have a propagation edges attribute of type PropagationEdgesAttr \
                           for attr named 'sdy.propagation_edges'";
            return self.report_at(Some(span), op, Code::InvalidOp, message);
        };
        let Some(steps) = self.valid_edges(read, span) else { return };
        if let Err(message) = self.fits(op, &steps) {
            self.report_at(Some(span), op, Code::InvalidOp, &message);
        }
    }

    fn edges_of_owners(&mut self, op: OpId, span: Span) {
        let program = self.program;
        let items = split_array(program.text().get(span));
        let read: Option<Vec<_>> = items.and_then(|items| {
            let read = |item: &str| parse_propagation_edges(self.alias_text(item), span.start);
            items.into_iter().map(read).collect()
        });
        let Some(read) = read else {
            let message = "should have a propagation edges attribute of type \
                           ArrayAttr<PropagationEdgesAttr> for attr named \
                           'sdy.result_propagation_edges' or 'sdy.block_arg_propagation_edges'";
            return self.report_at(Some(span), op, Code::InvalidOp, message);
        };
        for read in read {
            // An error inside is reported at the span of the whole list.
            let read = read.map_err(|mut error| {
                for problem in &mut error.diagnostics {
                    problem.span = Some(span);
                }
                error
            });
            self.valid_edges(read, span);
        }
    }

    /// The definition of the alias `text`; `text` itself if it is none.
    fn alias_text<'t>(&'t self, text: &'t str) -> &'t str {
        let alias = self.program.strings().find(text);
        let span = alias.and_then(|alias| self.program.alias(alias));
        span.map_or(text, |span| self.program.text().get(span))
    }

    /// Checks `steps` against the operands and results of `op`; fails with the message of the first
    /// error.
    fn fits(&self, op: OpId, steps: &[PropagationStep]) -> std::result::Result<(), String> {
        let mesh = self.mesh_of_edges(op, steps)?;
        let is_edge =
            matches!(self.program.kind(op), OpKind::DataFlowEdge | OpKind::FuncDataFlowEdge);
        let refers_to_edge = is_edge && self.program.shardy().has(Change::SourcesOfEdges);
        let num_operands = self.program.num_operands(op) as u32;
        let num_results = self.program.num_results(op) as u32;
        for entry in steps.iter().flat_map(|step| &step.axes) {
            let (name, _) = &entry.axis;
            if self.program.mesh(mesh).axis_by_name(name).is_none() {
                return Err(format!(
                    "expected axis ref to be in one of the meshes, got: \"{name}\""
                ));
            }
            if refers_to_edge {
                continue;
            }
            for &value in std::iter::once(&entry.source).chain(&entry.targets) {
                let (what, index, count) = match value {
                    EdgeValueRef::Operand(index) => ("an operand", index, num_operands),
                    EdgeValueRef::Result(index) => ("a result", index, num_results),
                };
                if index >= count {
                    return Err(format!(
                        "expected a value ref to have {what} index in range [0, {count}), got: {index}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The mesh, empty meshes aside, of the shardings of the values that `steps` refer to.
    fn mesh_of_edges(
        &self,
        op: OpId,
        steps: &[PropagationStep],
    ) -> std::result::Result<MeshId, String> {
        let entries = steps.iter().flat_map(|step| &step.axes);
        let nodes = entries.flat_map(|entry| std::iter::once(&entry.source).chain(&entry.targets));
        let mut common = MeshId::NONE;
        for value in nodes.filter_map(|&node| self.value_of(op, node)) {
            let kept = self.program.shardable_value(value);
            let sharding = kept.map(|kept| self.program.sharding(kept));
            let Some(sharding) = sharding.and_then(|id| self.program.shardings().get(id)) else {
                continue;
            };
            let (mesh, old) = (sharding.mesh, common);
            if old.is_none() || self.program.mesh(old).is_empty() {
                common = mesh;
            } else if self.program.mesh(old) != self.program.mesh(mesh)
                && !self.program.mesh(mesh).is_empty()
            {
                return Err("expected a common mesh for propagation edges attr.".to_owned());
            }
        }
        common
            .get()
            .ok_or_else(|| "expected propagation edges attr to reference a sharding.".to_owned())
    }

    fn value_of(&self, op: OpId, node: EdgeValueRef) -> Option<ValueId> {
        match node {
            EdgeValueRef::Operand(index) => self.program.operands(op).nth(index as usize),
            EdgeValueRef::Result(index) => self.program.op_results(op).nth(index as usize),
        }
    }
}
