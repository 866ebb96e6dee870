//! Reads problems in the format of the contest on intra-operator parallelism (IOPDDL), ASPLOS 2025.
//!
//! `{"problem": {"nodes": {"intervals", "costs", "usages"}, "edges": {"nodes", "costs"}, "usage_limit"}}`,
//! where each member has a list for each node or edge. Other members are ignored.

use super::problem::Problem;
use crate::error::{Code, Diagnostic, Result, Span};

/// Costs of at least this are forbidden: XLA writes an infinite cost as 10^18.
pub const FORBIDDEN: f64 = 1e17;

/// The problem in `text`.
pub fn read(text: &str) -> Result<Problem> {
    let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
    let mut lists = Lists::default();
    reader.object(0, &mut |reader, key| match key {
        b"problem" => reader.object(1, &mut |reader, key| match key {
            b"nodes" => reader.object(2, &mut |reader, key| match key {
                b"intervals" => reader.lists(&mut lists.intervals),
                b"costs" => reader.lists(&mut lists.costs),
                b"usages" => reader.lists(&mut lists.usages),
                _ => reader.skip(3),
            }),
            b"edges" => reader.object(2, &mut |reader, key| match key {
                b"nodes" => reader.lists(&mut lists.edges),
                b"costs" => reader.lists(&mut lists.edge_costs),
                _ => reader.skip(3),
            }),
            b"usage_limit" => {
                lists.limit = Some(reader.number()?);
                Ok(())
            }
            _ => reader.skip(2),
        }),
        _ => reader.skip(1),
    })?;
    reader.space();
    if reader.at < reader.bytes.len() {
        return reader.mistake("the text goes on after the problem");
    }
    lists.problem()
}

/// Concatenated lists of numbers.
#[derive(Default)]
struct Numbers {
    values: Vec<f64>,
    ends: Vec<usize>,
}

impl Numbers {
    fn get(&self, index: usize) -> &[f64] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[index]]
    }
}

#[derive(Default)]
struct Lists {
    intervals: Numbers,
    costs: Numbers,
    usages: Numbers,
    edges: Numbers,
    edge_costs: Numbers,
    limit: Option<f64>,
}

impl Lists {
    fn problem(&self) -> Result<Problem> {
        let mut problem = Problem::new(self.limit.map(|limit| limit as i64));
        let nodes = [&self.intervals, &self.costs, &self.usages].map(|lists| lists.ends.len());
        if nodes.iter().any(|&count| count != nodes[0]) {
            let [intervals, costs, usages] = nodes;
            let found =
                format!("{intervals} intervals, {costs} costs and {usages} usages of nodes");
            return Err(Diagnostic::new(Code::InvalidProblem, found).into());
        }
        let edges = [&self.edges, &self.edge_costs].map(|lists| lists.ends.len());
        if edges[0] != edges[1] {
            let found = format!("{} pairs of nodes and {} costs of edges", edges[0], edges[1]);
            return Err(Diagnostic::new(Code::InvalidProblem, found).into());
        }
        let mut costs = Vec::new();
        let mut finite = |all: &[f64]| {
            costs.clear();
            costs.extend(all.iter().map(|&c| if c >= FORBIDDEN { f64::INFINITY } else { c }));
            std::mem::take(&mut costs)
        };
        let mut usages = Vec::new();
        for index in 0..nodes[0] {
            usages.clear();
            usages.extend(self.usages.get(index).iter().map(|&usage| usage as i64));
            let interval = pair(self.intervals.get(index), "interval", index)?;
            problem.add_node(&finite(self.costs.get(index)), &usages, interval)?;
        }
        for index in 0..edges[0] {
            let nodes = pair(self.edges.get(index), "edge", index)?;
            problem.add_edge(nodes, &finite(self.edge_costs.get(index)))?;
        }
        Ok(problem)
    }
}

fn pair(values: &[f64], what: &str, index: usize) -> Result<[i64; 2]> {
    if let [first, second] = *values {
        return Ok([first as i64, second as i64]);
    }
    let found = format!("{what} {index} has {} numbers, not two", values.len());
    Err(Diagnostic::new(Code::InvalidProblem, found).into())
}

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
}

type Member<'a, 't> = &'a mut dyn FnMut(&mut Reader<'t>, &[u8]) -> Result<()>;

/// The deepest nesting of members that are skipped.
const DEEPEST: usize = 64;

impl<'t> Reader<'t> {
    fn mistake<T>(&self, message: &str) -> Result<T> {
        let start = self.at.min(self.bytes.len()) as u32;
        let span = Span::new(start, start + u32::from(self.at < self.bytes.len()));
        Err(Diagnostic::new(Code::Syntax, message).at(span).into())
    }
    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }
    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.bytes.get(self.at).copied()
    }
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }
    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.eat(byte) {
            Ok(())
        } else {
            self.mistake(&format!("expected '{}'", byte as char))
        }
    }
    fn string(&mut self) -> Result<&'t [u8]> {
        self.expect(b'"')?;
        let start = self.at;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => return Ok(&self.bytes[start..self.at - 1]),
                b'\\' => self.at += 1,
                _ => {}
            }
        }
        self.mistake("the text ends within a string")
    }
    fn object(&mut self, depth: usize, member: Member<'_, 't>) -> Result<()> {
        if depth > DEEPEST {
            return self.mistake("the text is nested too deeply");
        }
        self.expect(b'{')?;
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            member(self, key)?;
            if !self.eat(b',') {
                return self.expect(b'}');
            }
        }
    }
    fn array(&mut self, mut element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.expect(b'[')?;
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if !self.eat(b',') {
                return self.expect(b']');
            }
        }
    }
    fn lists(&mut self, numbers: &mut Numbers) -> Result<()> {
        self.array(|reader| {
            reader.array(|reader| {
                let value = reader.number()?;
                numbers.values.push(value);
                Ok(())
            })?;
            numbers.ends.push(numbers.values.len());
            Ok(())
        })
    }
    fn number(&mut self) -> Result<f64> {
        self.space();
        let start = self.at;
        let mut value = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.bytes.get(self.at) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        let plain = (1..19).contains(&(self.at - start));
        let rest = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        if plain && !self.bytes.get(self.at).is_some_and(rest) {
            return Ok(value as f64);
        }
        while self.bytes.get(self.at).is_some_and(rest) {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => {
                self.at = start;
                self.mistake("expected a number")
            }
        }
    }
    /// Skips any value, at nesting depth `depth`.
    fn skip(&mut self, depth: usize) -> Result<()> {
        if depth > DEEPEST {
            return self.mistake("the text is nested too deeply");
        }
        match self.peek() {
            Some(b'{') => self.object(depth, &mut |reader, _| reader.skip(depth + 1)),
            Some(b'[') => self.array(|reader| reader.skip(depth + 1)),
            Some(b'"') => self.string().map(|_| ()),
            _ => {
                let rest = &self.bytes[self.at..];
                let words: [&[u8]; 3] = [b"true", b"false", b"null"];
                match words.iter().find(|word| rest.starts_with(word)) {
                    Some(word) => {
                        self.at += word.len();
                        Ok(())
                    }
                    None => self.number().map(|_| ()),
                }
            }
        }
    }
}
