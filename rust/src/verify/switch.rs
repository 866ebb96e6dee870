//! Checks `cf.switch` and `cf.assert`.
//!
//! Source: MLIR's `ControlFlowOps.td` and `ControlFlowOps.cpp`.

use super::successors::{is_bit, segments, wrong_count};
use super::Verifier;
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::Type;
use crate::mlir::AttrValue;
use crate::shardy::Change;
use crate::stablehlo::{Attribute, Attributes, Element};

/// The attribute of a switch with the number of operands of each case.
const SEGMENTS: &str = "case_operand_segments";
/// The attribute of a switch with the value of each case.
const VALUES: &str = "case_values";

impl Verifier<'_> {
    /// Checks `op`, a `cf.switch`, which branches to one of `blocks`; the first is the default.
    pub(super) fn switch(&self, op: OpId, blocks: &[BlockId]) -> Result<(), String> {
        let program = self.program;
        let attributes = Attributes::of(program, op);
        if let Some(wrong) = attributes.get(VALUES).filter(|values| int_values(values).is_none()) {
            return Err(attributes.invalid(program.op_name(op), &wrong.not_stored()));
        }
        let is_segments = |list: &&Attribute<'_>| list.array_type() == Some("i32");
        if let Some(wrong) = attributes.get(SEGMENTS).filter(|list| !is_segments(list)) {
            return Err(attributes.invalid(program.op_name(op), &wrong.not_stored()));
        }
        self.is_bare_branch(op)?;
        let Some((&default, cases)) = blocks.split_first() else {
            return Err(wrong_count("cf.switch", "at least 1 successors", 0));
        };
        let operands: Vec<ValueId> = program.operands(op).collect();
        let Some(&flag) = operands.first() else {
            return Err("'cf.switch' op expected 1 or more operands, but found 0".to_owned());
        };
        let [num_flags, num_default, num_cases] = segments(program, op, operands.len())?;
        if attributes.get(SEGMENTS).is_none() {
            return Err(format!("'cf.switch' op requires attribute '{SEGMENTS}'"));
        }
        let flag = match program.value_type(flag) {
            Type::Other(text) => program.str(*text),
            _ => program.value_type_text(flag),
        };
        let is_signless = program.shardy().has(Change::SignlessSwitches);
        if !Element::parse(flag).is_integer() || (is_signless && !flag.starts_with('i')) {
            let what = if is_signless { "signless integer" } else { "integer" };
            return Err(format!("'cf.switch' op operand #0 must be {what}, but got '{flag}'"));
        }
        let sizes = case_sizes(attributes.ints(SEGMENTS), num_cases)?;
        case_values(&attributes, flag, cases.len())?;
        self.passes(&operands[num_flags..num_flags + num_default], default, 0)?;
        if sizes.len() < cases.len() {
            // MLIR crashes on it.
            let (has, needs) = (sizes.len(), cases.len());
            return Err(format!(
                "'cf.switch' op '{SEGMENTS}' attribute has {has} elements for {needs} case destinations"
            ));
        }
        let mut start = num_flags + num_default;
        for (at, (&block, size)) in cases.iter().zip(sizes).enumerate() {
            let end = start + size;
            self.passes(&operands[start..end], block, at + 1)?;
            start = end;
        }
        Ok(())
    }
    /// Checks `op`, a `cf.assert`, which has this many successors.
    pub(super) fn assertion(&self, op: OpId, num_successors: usize) -> Result<(), String> {
        let program = self.program;
        let attributes = Attributes::of(program, op);
        let message = attributes.get("msg");
        let is_text = message.is_none_or(|text| matches!(text.value, AttrValue::Str(_)));
        if let Some(wrong) = message.filter(|text| !is_text && text.is_property) {
            return Err(attributes.invalid(program.op_name(op), &wrong.not_stored()));
        }
        self.is_bare_branch(op)?;
        if num_successors != 0 {
            return Err("successors in non-terminator".to_owned());
        }
        if program.num_operands(op) != 1 {
            return Err("'cf.assert' op requires a single operand".to_owned());
        }
        if message.is_none() {
            return Err("'cf.assert' op requires attribute 'msg'".to_owned());
        }
        if !is_text {
            return Err("'cf.assert' op attribute 'msg' failed to satisfy constraint: string \
                        attribute"
                .to_owned());
        }
        is_bit(program, op, 0)
    }
}

/// The number of elements and the element type of `values`, if it is a list of integers.
fn int_values<'a>(values: &'a Attribute<'_>) -> Option<(i64, &'a Element)> {
    let (sizes, element) = values.dense_type()?;
    let is_stored = element.is_integer() || *element == Element::Index;
    is_stored.then(|| (sizes.iter().fold(1, |count, &size| size.wrapping_mul(count)), element))
}

/// The number of operands of each case, which are `total` together.
fn case_sizes(listed: &[i64], total: usize) -> Result<Vec<usize>, String> {
    if listed.iter().any(|size| *size < 0) {
        return Err(format!("'cf.switch' op '{SEGMENTS}' attribute cannot have negative elements"));
    }
    let sum = listed.iter().fold(0_i64, |sum, &size| sum.saturating_add(size));
    if usize::try_from(sum) != Ok(total) {
        return Err(format!(
            "'cf.switch' op caseOperands count ({total}) does not match with the total size ({sum}) specified in \
             attribute '{SEGMENTS}'"
        ));
    }
    Ok(listed.iter().filter_map(|&size| size.try_into().ok()).collect())
}

/// Checks that a switch by `flag`, a type, has a value of that type for each of `num_cases` cases.
fn case_values(attributes: &Attributes<'_>, flag: &str, num_cases: usize) -> Result<(), String> {
    let values = attributes.get(VALUES).and_then(int_values);
    if values.is_none() && num_cases == 0 {
        return Ok(());
    }
    if let Some(element) = values.map(|(_, element)| element.to_string()) {
        if element != flag {
            return Err(format!(
                "'cf.switch' op 'flag' type ('{flag}') should match case value type ('{element}')"
            ));
        }
    }
    // MLIR crashes on cases without values.
    let count = values.map_or(0, |(count, _)| count);
    if usize::try_from(count) != Ok(num_cases) {
        return Err(format!(
            "'cf.switch' op number of case values ({count}) should match number of case destinations ({num_cases})"
        ));
    }
    Ok(())
}
