//! Checks an op against its definition, in MLIR's order: the numbers of regions, results and
//! operands; attributes; types; regions; traits; the op's own checks; inferred result types.

use super::attributes::Attribute;
use super::compatible::{all_compatible, of_compatible_shape};
use super::constraint;
use super::definition::{Compares, Definition, Group, Regions};
use super::mistake::{of_op, Mistake};
use super::result_types::ResultTypes;
use super::types::{quoted, ValueType};
use super::view::OpView;
use crate::mlir::wrong_count;

impl Definition {
    /// Checks `op` against this definition; the error has MLIR's messages, usually one, at most
    /// two.
    pub fn check(&self, op: &OpView<'_>) -> Result<(), Vec<String>> {
        self.check_types(op).map_err(|mistake| vec![mistake.of(op.name)])?;
        self.check_inferred(op)
    }
    fn check_types(&self, op: &OpView<'_>) -> Result<(), Mistake> {
        let (knows_attributes, knows_types) = (op.has_known_attributes, op.differs_in_sizes);
        if !knows_attributes {
            self.properties(op)?;
        }
        if !knows_types {
            self.counts(op)?;
        }
        if !knows_attributes {
            self.attributes(op)?;
        }
        if !knows_types {
            types("operand", self.operands, op.operands)?;
            types("result", self.results, op.results)?;
        }
        self.regions(op)?;
        for held in self.traits {
            let is_known = if held.is_of_attributes() {
                knows_attributes
            } else {
                knows_types && !held.is_of_sizes()
            };
            if !is_known {
                held.check(op)?;
            }
        }
        self.verify.map_or(Ok(()), |verify| verify(op))
    }
    /// The inferred result types of `op`; `None` if the definition has no inference.
    pub fn infer(&self, op: &OpView<'_>) -> Option<Result<ResultTypes, Mistake>> {
        self.infer.map(|infer| infer(op))
    }
    fn check_inferred(&self, op: &OpView<'_>) -> Result<(), Vec<String>> {
        self.returns(op).map_err(|mistake| vec![mistake.of(op.name)])?;
        if self.compares == Compares::Nothing {
            return Ok(());
        }
        let Some(inferred) = self.infer(op) else { return Ok(()) };
        match &inferred {
            Ok(types) if self.fits(types, op.results) => Ok(()),
            _ => Err(not_inferred(op, inferred)),
        }
    }
    /// Whether the inferred types match the given ones, as far as MLIR compares them.
    fn fits(&self, types: &[ValueType], given: &[&ValueType]) -> bool {
        match self.compares {
            Compares::Shapes => {
                let mut pairs = types.iter().zip(given);
                types.len() == given.len() && pairs.all(|(a, b)| of_compatible_shape(a, b))
            }
            _ => all_compatible(types, given),
        }
    }
    /// Checks that the properties of an op in generic form have the types in which MLIR stores them.
    fn properties(&self, op: &OpView<'_>) -> Result<(), Mistake> {
        let is_property = |attribute: &&Attribute<'_>| attribute.is_property;
        let kind = |name: &str| self.attributes.iter().find(|known| known.name == name);
        let mut given = op.attributes.iter().filter(is_property).peekable();
        let mut problem = None;
        if given.peek().is_some() && self.attributes.is_empty() {
            problem = Some("this operation has empty properties".to_owned());
        }
        for attribute in given {
            let is_stored = kind(attribute.name).is_none_or(|known| known.kind.stores(attribute));
            if !is_stored && problem.is_none() {
                problem = Some(attribute.not_stored());
            }
        }
        let Some(problem) = problem else { return Ok(()) };
        Err(Mistake { text: op.attributes.invalid(op.name, &problem), names_op: false })
    }
    fn counts(&self, op: &OpView<'_>) -> Result<(), Mistake> {
        if let Regions::Named(names) = self.regions {
            let count = op.regions.len();
            if count != names.len() {
                count_of("region", names.len(), false, count)?;
            }
        }
        count_in("result", self.results, op.results.len())?;
        count_in("operand", self.operands, op.operands.len())
    }
    fn attributes(&self, op: &OpView<'_>) -> Result<(), Mistake> {
        let (mut lacks_one, mut wrong) = (false, None);
        for known in self.attributes {
            match op.attributes.get(known.name) {
                None => lacks_one |= known.is_required,
                Some(attribute) if wrong.is_none() && !known.kind.admits(attribute) => {
                    wrong = Some(known);
                }
                Some(_) => {}
            }
        }
        if !lacks_one && wrong.is_none() {
            return Ok(());
        }
        // A missing attribute is reported before a wrong one.
        let mut required = self.attributes.iter().filter(|known| known.is_required);
        Err(of_op(match (required.find(|known| op.attributes.get(known.name).is_none()), wrong) {
            (Some(known), _) => format!("requires attribute '{}'", known.name),
            (None, known) => {
                let (name, kind) =
                    known.map_or(("", String::new()), |known| (known.name, known.kind.name()));
                format!("attribute '{name}' failed to satisfy constraint: {kind}")
            }
        }))
    }
    /// Checks that regions end with the terminator that MLIR adds if there is none.
    fn returns(&self, op: &OpView<'_>) -> Result<(), Mistake> {
        let ends = op.regions.iter().filter_map(|region| region.ends);
        let wrong = ends.map(|[_, last]| last).find(|last| *last != "stablehlo.return");
        match wrong.filter(|_| self.has_implicit_return) {
            Some(last) => Err(of_op(format!(
                "expects regions to end with 'stablehlo.return', found '{last}'"
            ))),
            None => Ok(()),
        }
    }
    fn regions(&self, op: &OpView<'_>) -> Result<(), Mistake> {
        for (index, region) in op.regions.iter().enumerate() {
            let name = match self.regions {
                Regions::Named(names) => names.get(index).copied().unwrap_or_default(),
                Regions::Branches(name) => name,
                Regions::Any => return Ok(()),
            };
            if self.has_implicit_return && region.num_blocks > 1 {
                return Err(of_op(format!("expects region #{index} to have 0 or 1 blocks")));
            }
            if region.num_blocks != 1 {
                return Err(of_op(format!(
                    "region #{index} ('{name}') failed to verify constraint: region with 1 blocks"
                )));
            }
            if region.num_ops == 0 {
                return Err(of_op("expects a non-empty block"));
            }
        }
        Ok(())
    }
}

/// The errors of an op whose inferred result types do not match its results, or cannot be inferred.
#[cold]
fn not_inferred(op: &OpView<'_>, inferred: Result<ResultTypes, Mistake>) -> Vec<String> {
    let why = inferred.map_or_else(
        |mistake| mistake,
        |types| {
            let (inferred, given) = (quoted(&types), quoted(op.results));
            of_op(format!(
                "inferred type(s) {inferred} are incompatible with return type(s) of operation \
                 {given}"
            ))
        },
    );
    let failure = of_op("failed to infer returned types").of(op.name);
    let said = [why.of(op.name), failure];
    said.into_iter().filter(|text| !text.is_empty()).collect()
}

/// Checks that the number of operands or results (`noun`) matches `groups`.
#[inline]
fn count_in(noun: &str, groups: &[Group], has: usize) -> Result<(), Mistake> {
    let (mut least, mut is_open) = (0, false);
    for group in groups {
        is_open |= group.is_variadic;
        least += usize::from(!group.is_variadic);
    }
    if has == least {
        return Ok(());
    }
    count_of(noun, least, is_open, has)
}

/// Checks that there are `needs` operands, results or regions (`noun`), or at least that many if
/// `is_open`.
fn count_of(noun: &str, needs: usize, is_open: bool, has: usize) -> Result<(), Mistake> {
    if has == needs || is_open && has > needs {
        return Ok(());
    }
    let message = match wrong_count(noun, needs, has) {
        None => return Ok(()),
        Some(_) if is_open => format!("expected {needs} or more {noun}s, but found {has}"),
        Some(message) => message,
    };
    Err(of_op(message))
}

/// Checks the types of operands or results.
#[inline]
fn types(side: &str, groups: &[Group], types: &[&ValueType]) -> Result<(), Mistake> {
    let mut num_variadic = 0;
    for (at, group) in groups.iter().enumerate() {
        if group.is_variadic {
            num_variadic += 1;
        } else if num_variadic == 0 {
            // The counts were checked.
            let ty = types[at];
            if !constraint::admits(group.takes, ty) {
                return Err(wrong_type(side, at, group, ty));
            }
        }
    }
    if num_variadic == 0 {
        return Ok(());
    }
    types_in_lists(side, groups, num_variadic, types)
}

/// Checks the types of operands or results in variadic groups.
fn types_in_lists(
    side: &str,
    groups: &[Group],
    num_variadic: usize,
    types: &[&ValueType],
) -> Result<(), Mistake> {
    let num_fixed = groups.len() - num_variadic;
    let each = (types.len() - num_fixed).checked_div(num_variadic).unwrap_or(0);
    let mut left = types;
    for group in groups {
        let count = if group.is_variadic { each } else { 1 };
        let (own, others) = left.split_at(count.min(left.len()));
        let mut last: Option<&ValueType> = None;
        for (at, &ty) in own.iter().enumerate() {
            // Of consecutive values with one type, only the first is checked.
            let is_new = last.replace(ty).is_none_or(|last| !std::ptr::eq(last, ty));
            if is_new && !constraint::admits(group.takes, ty) {
                return Err(wrong_type(side, types.len() - left.len() + at, group, ty));
            }
        }
        left = others;
    }
    Ok(())
}

fn wrong_type(side: &str, index: usize, group: &Group, ty: &ValueType) -> Mistake {
    let takes = constraint::name(group.takes);
    let variadic = if group.is_variadic { "variadic of " } else { "" };
    of_op(format!("{side} #{index} must be {variadic}{takes}, but got '{ty}'"))
}
