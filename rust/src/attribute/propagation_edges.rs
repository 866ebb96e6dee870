//! Text of `#sdy.propagation_edges<[{step-0 = [{"x" = operand-0 -> [result-0]}]}]>`: the axes that
//! propagated between tensors of an op, by step.
//!
//! Source: Shardy's `PropagationEdgesAttr`, its assembly format and verifier.

use super::axis::{read_free_axis, write_free_axis};
use super::cursor::Cursor;
use super::parameter::Parameter;
use crate::axis::SubAxis;
use crate::error::{Code, Diagnostic, Result, Span};
use rustc_hash::FxHashSet;
use std::fmt::Write as _;

/// An operand or a result of an op; operands are ordered before results.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EdgeValueRef {
    /// `operand-0`
    Operand(u32),
    /// `result-0`
    Result(u32),
}

/// The propagation of one axis from one operand or result to others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AxisPropagation {
    /// The name of the axis, and the sub-axis.
    pub axis: (String, Option<SubAxis>),
    /// The tensor that had the axis.
    pub source: EdgeValueRef,
    /// The tensors that got the axis.
    pub targets: Vec<EdgeValueRef>,
}

/// The propagation in one step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PropagationStep {
    /// The index of the step; steps are numbered over the whole program.
    pub index: i64,
    /// The axes that propagated.
    pub axes: Vec<AxisPropagation>,
}

/// Parses `#sdy.propagation_edges<...>`; `None` if `text` is another attribute.
pub fn parse_propagation_edges(text: &str, base: u32) -> Option<Result<Vec<PropagationStep>>> {
    const NAME: &str = "propagation_edges";
    let mut cursor = Cursor::new(text, base);
    cursor.skip_space();
    let is_one = ["#sdy.", "#sdy<"].iter().any(|prefix| {
        let mut probe = cursor.clone();
        probe.eat(prefix) && probe.eat_word(NAME)
    });
    is_one.then(|| {
        let wrapping = cursor.open(NAME);
        cursor.expect("<")?;
        cursor.expect("[")?;
        let steps = cursor.parameter(&STEPS, |cursor| cursor.items(read_step))?;
        cursor.expect("]")?;
        cursor.expect(">")?;
        cursor.close(wrapping)?;
        cursor.finish()?;
        Ok(steps)
    })
}

const STEPS: Parameter =
    Parameter::new("Sdy_PropagationEdges", "value", "::llvm::ArrayRef<PropagationOneStepAttr>");
const STEP_INDEX: Parameter = Parameter::new("Sdy_PropagationOneStep", "step_index", "int64_t");
const AXIS_ENTRIES: Parameter = Parameter::new(
    "Sdy_PropagationOneStep",
    "axis_entries",
    "::llvm::ArrayRef<AxisToPropagationDetailsAttr>",
);
const AXIS: Parameter =
    Parameter::new("Sdy_AxisToPropagationDetails", "axis_name", "::mlir::sdy::AxisRefAttr");
const SOURCE: Parameter =
    Parameter::new("Sdy_AxisToPropagationDetails", "source", "::mlir::sdy::EdgeValueRefAttr");
const TARGETS: Parameter =
    Parameter::new("Sdy_AxisToPropagationDetails", "targets", "::llvm::ArrayRef<EdgeValueRefAttr>");
const VALUE_TYPE: Parameter =
    Parameter::new("Sdy_EdgeValueRef", "type", "::mlir::sdy::EdgeNodeType");
const VALUE_INDEX: Parameter = Parameter::new("Sdy_EdgeValueRef", "index", "int64_t");

fn read_step(cursor: &mut Cursor<'_>) -> Result<PropagationStep> {
    cursor.expect("{")?;
    if !cursor.eat_word("step") {
        return Err(cursor.expected("'step'"));
    }
    cursor.expect("-")?;
    let (index, _) = cursor.parameter(&STEP_INDEX, Cursor::integer)?;
    cursor.expect("=")?;
    cursor.expect("[")?;
    let axes = cursor.parameter(&AXIS_ENTRIES, |cursor| cursor.items(read_axis))?;
    cursor.expect("]")?;
    cursor.expect("}")?;
    Ok(PropagationStep { index, axes })
}

fn read_axis(cursor: &mut Cursor<'_>) -> Result<AxisPropagation> {
    cursor.expect("{")?;
    let axis = cursor.parameter(&AXIS, read_free_axis)?;
    cursor.expect("=")?;
    let source = cursor.parameter(&SOURCE, read_value_ref)?;
    cursor.expect("->")?;
    cursor.expect("[")?;
    let targets = cursor.parameter(&TARGETS, |cursor| cursor.items(read_value_ref))?;
    cursor.expect("]")?;
    cursor.expect("}")?;
    Ok(AxisPropagation { axis, source, targets })
}

fn read_value_ref(cursor: &mut Cursor<'_>) -> Result<EdgeValueRef> {
    let is_result = cursor.parameter(&VALUE_TYPE, |cursor| {
        let span = cursor.token();
        match cursor.word() {
            Some(("result", _)) => Ok(true),
            Some(("operand", _)) => Ok(false),
            Some(_) => {
                let message = "expected ::mlir::sdy::EdgeNodeType to be one of: operand, result";
                Err(Diagnostic::new(Code::Syntax, message).at(span).into())
            }
            None => Err(cursor.expected("valid keyword or string")),
        }
    })?;
    cursor.expect("-")?;
    let start = cursor.position();
    let (index, _) = cursor.parameter(&VALUE_INDEX, Cursor::integer)?;
    let Ok(index) = u32::try_from(index) else {
        let message = format!("there is no operand or result with the index {index}");
        let span = cursor.span_from(start);
        return Err(Diagnostic::new(Code::InvalidOp, message).at(span).into());
    };
    Ok(if is_result { EdgeValueRef::Result(index) } else { EdgeValueRef::Operand(index) })
}

/// All mistakes in `steps` that do not depend on the op.
pub fn verify_propagation_edges(steps: &[PropagationStep], span: Span) -> Vec<Diagnostic> {
    let problem = |message: String| Diagnostic::new(Code::InvalidOp, message).at(span);
    let mut problems = Vec::new();
    let mut seen = FxHashSet::default();
    for PropagationStep { index, axes } in steps {
        if *index < 0 {
            problems.push(problem(format!("propagation edges have negative step index: {index}")));
        }
        if !seen.insert(*index) {
            let message = format!("propagation edges have duplicate step index: {index}");
            problems.push(problem(message));
        }
        for AxisPropagation { axis: (name, _), source, targets } in axes {
            if targets.contains(source) {
                let message = "propagation edges have a source that is the same as a target";
                problems.push(problem(message.to_owned()));
            }
            let mut seen = FxHashSet::default();
            if !targets.iter().all(|target| seen.insert(*target)) {
                let message = format!(
                    "propagation edges have duplicate targets for step index: {index} and axis: {name}"
                );
                problems.push(problem(message));
            }
        }
    }
    problems
}

/// Appends `#sdy.propagation_edges<...>`.
pub fn write_propagation_edges(out: &mut String, steps: &[PropagationStep]) {
    out.push_str("#sdy.propagation_edges<[");
    separated(out, steps, |out, step| {
        let _ = write!(out, "{{step-{} = [", step.index);
        separated(out, &step.axes, |out, axis| {
            out.push('{');
            write_free_axis(out, &axis.axis.0, axis.axis.1);
            out.push_str(" = ");
            write_value_ref(out, axis.source);
            out.push_str(" -> [");
            separated(out, &axis.targets, |out, &target| write_value_ref(out, target));
            out.push_str("]}");
        });
        out.push_str("]}");
    });
    out.push_str("]>");
}

fn write_value_ref(out: &mut String, value: EdgeValueRef) {
    let _ = match value {
        EdgeValueRef::Operand(index) => write!(out, "operand-{index}"),
        EdgeValueRef::Result(index) => write!(out, "result-{index}"),
    };
}

fn separated<T>(out: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write(out, item);
    }
}

/// The index of the last step in `steps`, -1 if there is none.
pub fn last_step(steps: &[PropagationStep]) -> i64 {
    steps.iter().map(|step| step.index).max().unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<PropagationStep>> {
        parse_propagation_edges(text, 0).expect("it names itself")
    }

    #[test]
    fn text_goes_in_and_out() {
        let text = r#"#sdy.propagation_edges<[{step-0 = [{"a=":(1)2 = operand-0 -> [operand-1, result-0]}, {"b" = result-0 -> [operand-0]}]}, {step-3 = [{"c" = operand-1 -> [result-0]}]}]>"#;
        let steps = parse(text).unwrap();
        assert_eq!(last_step(&steps), 3);
        assert!(verify_propagation_edges(&steps, Span::EMPTY).is_empty());
        let mut out = String::new();
        write_propagation_edges(&mut out, &steps);
        assert_eq!(out, text);
        let angled = text.replace("#sdy.propagation_edges", "#sdy<propagation_edges") + ">";
        assert_eq!(parse(&angled).unwrap(), steps);
        assert!(parse_propagation_edges("64 : i64", 0).is_none());
        for bad in [
            "",
            "<[]>",
            "<[{step-0 = []}]>",
            "<[{}]>",
            "<[{step-1 = [{\"a\" = operand-0}]}]>",
            "<[]> x",
            "<[{step-1",
        ] {
            assert!(parse(&format!("#sdy.propagation_edges{bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn each_mistake_is_found() {
        let text = r#"#sdy.propagation_edges<[{step--3 = [{"a" = operand-0 -> [operand-0]}]}, {step--3 = [{"x" = result-0 -> [operand-0, operand-0]}]}]>"#;
        let problems = verify_propagation_edges(&parse(text).unwrap(), Span::EMPTY);
        let messages: Vec<&str> = problems.iter().map(|problem| &*problem.message).collect();
        let all = messages.join("\n");
        for part in ["negative step index: -3", "same as a target", "duplicate step index: -3"] {
            assert!(all.contains(part), "{part}");
        }
        assert!(all.contains("duplicate targets for step index: -3 and axis: x"));
    }
}
