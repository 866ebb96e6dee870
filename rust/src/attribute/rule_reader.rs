//! Parses op sharding rules in the same steps as the reference, since its error messages depend on
//! these.

use super::cursor::Cursor;
use super::parameter::{with_hint, Parameter};
use super::problem::Part;
use super::rule::{factor_symbol, NUM_LETTERS, SPECIAL_LISTS};
use super::rule_check::{rule_problems, tensor_name};
use crate::error::{Code, Diagnostic, Error, Result, Span};
use crate::index::FactorId;
use crate::memory;
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};
use crate::shardy::{Change, Version};

const MAPPINGS: [Parameter; 2] = [
    Parameter::new("Sdy_OpShardingRule", "operand_mappings", "::llvm::ArrayRef<TensorMappingAttr>"),
    Parameter::new("Sdy_OpShardingRule", "result_mappings", "::llvm::ArrayRef<TensorMappingAttr>"),
];
const DIM_MAPPINGS: Parameter =
    Parameter::new("Sdy_TensorMapping", "dim_mappings", "::llvm::ArrayRef<DimMappingAttr>");

/// A parsed rule, and all errors in it that do not depend on the op.
#[derive(Clone, Debug)]
pub struct ReadRule {
    /// The rule; it may have factors without a size.
    pub rule: OpShardingRule,
    /// The mistakes.
    pub problems: Vec<Diagnostic>,
}

/// Parses and verifies a rule, `#sdy.op_sharding_rule<...>` or the part in angle brackets alone.
/// `base` is the offset of `text` in the program's text. [`super::verify_rule_shapes`] checks that the rule
/// fits its op.
pub fn parse_rule(text: &str, base: u32) -> Result<OpShardingRule> {
    sound(read_rule(text, base, 0, Version::NEWEST)?)
}

/// Parses a rule outside a program; factors of size 0 are invalid.
pub fn parse_lone_rule(text: &str) -> Result<OpShardingRule> {
    memory::ensure_for_text(text)?;
    sound(read_rule(text, 0, 1, Version::NEWEST)?)
}

fn sound(read: ReadRule) -> Result<OpShardingRule> {
    Error::check(read.problems)?;
    Ok(read.rule)
}

/// Parses a rule for version `shardy`; the smallest valid factor size is `least_size`. Fails only
/// on syntax errors.
pub fn read_rule(text: &str, base: u32, least_size: i64, shardy: Version) -> Result<ReadRule> {
    let mut cursor = Cursor::new(text, base);
    let wrapping = cursor.open("op_sharding_rule");
    let mut reader = RuleReader { shardy, ..RuleReader::default() };
    let start = cursor.position();
    let read = reader.read(&mut cursor);
    let whole = cursor.span_from(start);
    let read = read.and_then(|raw| {
        cursor.close(wrapping)?;
        cursor.finish()?;
        Ok(raw)
    });
    let raw = match read {
        Ok(raw) if reader.problems.is_empty() => raw,
        Ok(_) => return Err(Error { diagnostics: reader.problems }),
        Err(mut error) => {
            reader.problems.append(&mut error.diagnostics);
            return Err(Error { diagnostics: reader.problems });
        }
    };
    let (rule, mut problems) = raw.resolve();
    let found = rule_problems(&rule, least_size).into_iter();
    let span_of = |part| reader.span_of(part).or(Some(whole));
    problems.extend(found.map(|problem| problem.located(span_of)));
    Ok(ReadRule { rule, problems })
}

/// The number of a factor, before the number of factors is known, and its span.
type RawFactor = (i64, Span);

/// A rule as it is in the text.
struct RawRule {
    tensors: Vec<Vec<Vec<RawFactor>>>,
    num_operands: usize,
    factor_sizes: Vec<i64>,
    special: [Vec<RawFactor>; 4],
    is_custom: bool,
}

impl RawRule {
    /// The rule, and the errors of factors whose number is not a valid id.
    fn resolve(self) -> (OpShardingRule, Vec<Diagnostic>) {
        let num_factors = self.factor_sizes.len();
        let mut problems = Vec::new();
        let mut id = |(index, span): RawFactor, message: &dyn Fn() -> String| {
            let small = u32::try_from(index).ok().filter(|&index| index < u32::MAX);
            small.map_or_else(
                || {
                    problems.push(Diagnostic::new(Code::InvalidRule, message()).at(span));
                    FactorId::NONE
                },
                FactorId::new,
            )
        };
        let num_results = self.tensors.len() - self.num_operands;
        let mut tensors = Vec::new();
        for (tensor, dims) in self.tensors.into_iter().enumerate() {
            let name = tensor_name(tensor, self.num_operands, num_results);
            let dims = dims.into_iter().map(|dim| {
                let ids = dim.into_iter().map(|factor| {
                    id(factor, &|| super::rule_check::out_of_range(&name, factor.0, num_factors))
                });
                ids.collect()
            });
            tensors.push(TensorMapping { dims: dims.collect() });
        }
        let mut list = |factors: Vec<RawFactor>| -> Vec<FactorId> {
            let ids = factors.into_iter().map(|factor| {
                id(factor, &|| match factor.0 {
                    ..0 => "index must be non-negative".to_owned(),
                    index => format!("index must be less than {num_factors}, got: {index}"),
                })
            });
            ids.collect()
        };
        let [reduction, need_replication, permutation, blocked] = self.special.map(&mut list);
        let results = tensors.split_off(self.num_operands);
        let rule = OpShardingRule {
            factor_sizes: self.factor_sizes,
            operands: tensors,
            results,
            reduction,
            need_replication,
            permutation,
            blocked,
            is_custom: self.is_custom,
        };
        (rule, problems)
    }
}

/// The spans of the parts of a rule, and errors that do not stop parsing.
#[derive(Default)]
struct RuleReader {
    tensors: Vec<(Span, Vec<Span>)>,
    factors: Vec<Span>,
    special: [Vec<Span>; 4],
    problems: Vec<Diagnostic>,
    shardy: Version,
}

impl RuleReader {
    fn span_of(&self, part: Part) -> Option<Span> {
        match part {
            Part::Tensor(tensor) => Some(self.tensors.get(tensor)?.0),
            Part::TensorDim(tensor, dim) => self.tensors.get(tensor)?.1.get(dim).copied(),
            Part::Factor(factor) => self.factors.get(factor).copied(),
            Part::Special(list, item) => self.special.get(list)?.get(item).copied(),
            _ => None,
        }
    }

    fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<RawRule> {
        cursor.expect("<")?;
        let mut tensors = Vec::new();
        let num_operands = self.read_tensors(cursor, &MAPPINGS[0], &mut tensors)?;
        cursor.expect("->")?;
        self.read_tensors(cursor, &MAPPINGS[1], &mut tensors)?;
        let factor_sizes = self.read_sizes(cursor)?;
        let mut special = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        for (at, list) in special.iter_mut().enumerate() {
            *list = self.read_special(cursor, SPECIAL_LISTS[at])?;
            self.special[at] = list.iter().map(|(_, span)| *span).collect();
        }
        let is_custom = cursor.eat(",");
        if is_custom && !cursor.eat_word("custom") {
            return Err(cursor.expected("'custom'"));
        }
        cursor.expect(">").map_err(|mut error| {
            if let ([problem], false) = (&mut error.diagnostics[..], is_custom) {
                let lists = SPECIAL_LISTS.join("={..}, ");
                let hint = format!("after the sizes come, in this order, {lists}={{..}}, custom");
                problem.hint = Some(hint);
            }
            error
        })?;
        Ok(RawRule { tensors, num_operands, factor_sizes, special, is_custom })
    }

    /// Reads `([i, j], [jk])`; returns the number of tensors.
    fn read_tensors(
        &mut self,
        cursor: &mut Cursor<'_>,
        parameter: &Parameter,
        tensors: &mut Vec<Vec<Vec<RawFactor>>>,
    ) -> Result<usize> {
        cursor.expect("(")?;
        let read = cursor.parameter(parameter, |cursor| {
            cursor.items(|cursor| {
                let start = cursor.position();
                cursor.expect("[")?;
                let mut dims = Vec::new();
                let mut spans = Vec::new();
                if !cursor.eat("]") {
                    dims = cursor.parameter(&DIM_MAPPINGS, |cursor| {
                        cursor.items(|cursor| self.read_dim(cursor, &mut spans))
                    })?;
                    cursor.expect("]").map_err(|error| {
                        with_hint(error, "a dim's factors stand without a gap: [ij, k]")
                    })?;
                }
                self.tensors.push((cursor.span_from(start), spans));
                Ok(dims)
            })
        })?;
        cursor.expect(")")?;
        let count = read.len();
        tensors.extend(read);
        Ok(count)
    }

    /// Reads the factors of a dim, which may have none.
    fn read_dim(
        &mut self,
        cursor: &mut Cursor<'_>,
        spans: &mut Vec<Span>,
    ) -> Result<Vec<RawFactor>> {
        let Some((word, span)) = cursor.word() else {
            let start = cursor.position();
            spans.push(Span::new(start, start));
            return Ok(Vec::new());
        };
        spans.push(span);
        let mut factors = Vec::new();
        let mut rest = (word, span.start);
        while !rest.0.is_empty() {
            factors.push(self.factor(&mut rest)?);
        }
        Ok(factors)
    }

    /// Removes the first factor from `rest`: symbols without white space, and their offset.
    fn factor(&mut self, rest: &mut (&str, u32)) -> Result<RawFactor> {
        let (text, start) = *rest;
        let span = |len: usize| Span::new(start, start + len as u32);
        let fail = |message: &str, received: &str, hint: &str| {
            let message = format!("{message}. Received: '{received}'");
            let problem = Diagnostic::new(Code::Syntax, message).at(span(text.len()));
            Err(Error::from(problem.with_hint(hint)))
        };
        let names = "factors are called i to z, then z_1, z_2, ...";
        let Some(number) = text.strip_prefix("z_") else {
            let letter = text.as_bytes().first().copied().unwrap_or_default();
            if !letter.is_ascii_lowercase() || letter < b'i' {
                return fail("expecting symbol from 'i' to 'z'", &text[..1], names);
            }
            *rest = (&text[1..], start + 1);
            return Ok((i64::from(letter - b'i'), span(1)));
        };
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        let number = &number[..digits];
        if digits == 0 {
            return fail("expecting integer after 'z_'", text, names);
        }
        if number.starts_with('0') {
            let message = "expecting positive integer without leading zeros";
            return fail(message, number, "the factor after z is z_1");
        }
        let len = 2 + digits;
        *rest = (&text[len..], start + len as u32);
        // The reference reports an error and continues with 0; its addition wraps around.
        let number = number.parse::<i64>().unwrap_or_else(|_| {
            let message = format!("expecting symbol index <=2^63-1. Received: '{number}'");
            self.problems.push(Diagnostic::new(Code::Syntax, message).at(span(len)));
            0
        });
        Ok((number.wrapping_add(i64::from(NUM_LETTERS) - 1), span(len)))
    }

    /// Reads `{i=8, j=16}` if it is next.
    fn read_sizes(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<i64>> {
        if !cursor.eat("{") {
            return Ok(Vec::new());
        }
        cursor.list("}", |cursor| {
            let (word, span) = keyword(cursor)?;
            let mut rest = (word, span.start);
            let (index, _) = self.factor(&mut rest)?;
            let next = self.factors.len();
            if index != next as i64 {
                let message = format!(
                    "expecting factor indices to be ordered like an iota ([0,1,2,...], e.g. \
                     {{i=#, j=#, ...}}). Expecting factor index symbol '{}', received: '{}'",
                    factor_symbol(next),
                    symbol_of(index)
                );
                return Err(Diagnostic::new(Code::Syntax, message).at(span).into());
            }
            if !rest.0.is_empty() {
                let message = format!("expecting single factor symbol: {}", rest.0);
                return Err(Diagnostic::new(Code::Syntax, message).at(span).into());
            }
            cursor.expect("=")?;
            let (size, size_span) = cursor.integer()?;
            if i32::try_from(size).is_err() && !self.shardy.has(Change::WideFactors) {
                let problem = Diagnostic::new(Code::InvalidRule, "integer value too large");
                let hint = "the sizes of factors are integers of 32 bits";
                return Err(problem.at(size_span).with_hint(hint).into());
            }
            self.factors.push(cursor.span_from(span.start));
            Ok(size)
        })
    }

    /// Reads `name={i, k}` if it is next.
    fn read_special(&mut self, cursor: &mut Cursor<'_>, name: &str) -> Result<Vec<RawFactor>> {
        if !cursor.eat_word(name) {
            return Ok(Vec::new());
        }
        cursor.expect("=")?;
        if !cursor.eat("{") {
            return Ok(Vec::new());
        }
        cursor.list("}", |cursor| {
            let (word, span) = keyword(cursor)?;
            let mut rest = (word, span.start);
            let factor = self.factor(&mut rest)?;
            if rest.0.is_empty() {
                return Ok(factor);
            }
            // The reference reads the first symbol and ignores the rest.
            let message = format!("expecting single factor symbol: {}", rest.0);
            let problem = Diagnostic::new(Code::Syntax, message).at(span);
            Err(problem.with_hint("separate factors with commas").into())
        })
    }
}

/// Reads a bare word.
fn keyword<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, Span)> {
    cursor.word().ok_or_else(|| cursor.expected("valid keyword"))
}

/// The reference's symbol of the factor `index`, which may not be a valid id.
fn symbol_of(index: i64) -> String {
    let last = i64::from(NUM_LETTERS) - 1;
    if index > last {
        return format!("z_{}", index - last);
    }
    char::from(b'i'.wrapping_add(index as u8)).to_string()
}
