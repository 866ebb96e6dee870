//! Checks functions as values: `func.constant` and `func.call_indirect`.

use super::Verifier;
use crate::error::{Code, Diagnostic};
use crate::index::{FuncId, OpId, ValueId};
use crate::ir::{OpKind, Type};
use crate::stablehlo::Attributes;

impl Verifier<'_> {
    /// Checks `func.constant` and `func.call_indirect`.
    pub(super) fn indirect(&mut self, op: OpId) {
        let found = match self.program.op_name(op) {
            "func.constant" => self.check_reference(op),
            "func.call_indirect" => self.check_indirect_call(op),
            _ => Ok(()),
        };
        if let Err(message) = found {
            let problem = self.problem(op, Code::InvalidOp, &message);
            self.report(op, problem);
        }
    }
    fn check_reference(&self, op: OpId) -> Result<(), String> {
        let attributes = Attributes::of(self.program, op);
        let text = match attributes.get("value") {
            Some(value) => value.text.unwrap_or_else(|| self.program.constant_text(op)).trim(),
            None => return Err("requires attribute 'value'".to_owned()),
        };
        // In custom syntax the text includes the type.
        let text = text.split_once(':').map_or(text, |(name, _)| name.trim());
        let Some(name) = text.strip_prefix('@').filter(|name| !name.contains("::")) else {
            let kind = "flat symbol reference attribute";
            return Err(format!("attribute 'value' failed to satisfy constraint: {kind}"));
        };
        let name = name.trim_matches('"');
        let Some(function) = self.nearest_function(op, name) else {
            return Err(format!("reference to undefined function '{name}'"));
        };
        let result = self.program.op_results(op).next().and_then(|value| self.function_type(value));
        if result == Some(self.type_of_function(function)) {
            return Ok(());
        }
        Err("reference to function with mismatched type".to_owned())
    }
    fn check_indirect_call(&self, op: OpId) -> Result<(), String> {
        let mut operands = self.program.operands(op);
        let Some(callee) = operands.next() else {
            return Err("expected 1 or more operands, but found 0".to_owned());
        };
        let Some((inputs, results)) = self.function_type(callee) else {
            let text = self.program.value_type_text(callee);
            return Err(format!("operand #0 must be function type, but got '{text}'"));
        };
        if self.texts(operands) != inputs {
            return Err("failed to verify that callee input types match argument types".to_owned());
        }
        if self.texts(self.program.op_results(op)) != results {
            return Err("failed to verify that callee result types match result types".to_owned());
        }
        Ok(())
    }
    /// The types of `values` without white space, joined by commas.
    fn texts(&self, values: impl Iterator<Item = ValueId>) -> String {
        let texts = values.map(|value| plain(self.program.value_type_text(value)));
        texts.collect::<Vec<_>>().join(",")
    }
    fn type_of_function(&self, function: FuncId) -> (String, String) {
        let program = self.program;
        let list = |ports: &[crate::ir::Port]| {
            let text =
                |port: &crate::ir::Port| plain(program.text().get(program.types().text(port.ty)));
            ports.iter().map(text).collect::<Vec<_>>().join(",")
        };
        (list(program.func_args(function)), list(program.func_results(function)))
    }
    /// The inputs and the results in the function type of `value`, as texts; `None` if it has
    /// another type.
    fn function_type(&self, value: ValueId) -> Option<(String, String)> {
        let Type::Other(text) = self.program.value_type(value) else { return None };
        let text = self.program.str(*text);
        let end = closing(text)?;
        let results = text[end + 1..].strip_prefix("->")?;
        let results = match results.strip_prefix('(') {
            Some(list) if closing(results) == Some(results.len() - 1) => list.strip_suffix(')')?,
            _ => results,
        };
        Some((text[1..end].to_owned(), results.to_owned()))
    }
    /// The function called `name` in the innermost module around `op`.
    pub(super) fn nearest_function(&self, op: OpId, name: &str) -> Option<FuncId> {
        let program = self.program;
        let mut parents = std::iter::successors(program.parent_op(op), |&op| program.parent_op(op));
        let module = parents.find(|&op| program.kind(op) == OpKind::Module)?;
        let mut functions = program.func_ids();
        functions.find(|&id| {
            program.str(program.func_name(id)) == name
                && program.parent_op(program.func_op(id)) == Some(module)
        })
    }
    /// Reports an error in `op` whose message MLIR does not prefix with the op's name.
    pub(super) fn bare(&mut self, op: OpId, message: String) {
        self.report(op, Diagnostic::new(Code::InvalidOp, message));
    }
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The offset of the parenthesis that closes the one at the start of `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(at),
            b')' => depth -= 1,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::closing;

    #[test]
    fn parentheses() {
        assert_eq!(closing("(a)->b"), Some(2));
        assert_eq!(closing("((a)->b)->()"), Some(7));
        assert_eq!(closing("()"), Some(1));
        assert_eq!(closing("index"), None);
        assert_eq!(closing("((a)"), None);
    }
}
