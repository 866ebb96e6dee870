//! The call graph.
//!
//! The order matters: passes that walk functions visit callees first, in the post-order of a
//! depth-first search that starts from the functions in program order and follows calls in program
//! order. This is the order of MLIR's `CallGraph` and LLVM's post-order iterator.

use super::mistake;
use crate::error::{Code, Result};
use crate::index::{FuncId, Id, OpId};
use crate::ir::{OpKind, Payload, Program, SymbolTable};

/// The ops that call functions: `func.call`, and the calls of `mpmd`.
const CALLS: [OpKind; 3] = [OpKind::Call, OpKind::MpmdCall, OpKind::FragmentCall];

/// The calls of a module.
#[derive(Clone, Debug, Default)]
pub struct CallGraph {
    /// Functions with a body, callees before callers.
    pub post_order: Vec<FuncId>,
    /// All calls, grouped by function.
    calls: Vec<OpId>,
    /// For each function with a body, the range of its calls in `calls`.
    ranges: Vec<Option<(u32, u32)>>,
    /// Calls that close a cycle.
    circular: Vec<OpId>,
}

impl CallGraph {
    /// The call graph of `program`, whose symbols are `symbols`.
    pub fn new(program: &mut Program, symbols: &SymbolTable) -> Self {
        let mut graph = Self { ranges: vec![None; program.num_func_ids()], ..Self::default() };
        let calls = program.ops_in_pre_order(&CALLS);
        let mut calls = calls.into_iter().map(|call| (program.top_level_op(call), call)).peekable();
        let functions = program.functions_in_order();
        for &func in &functions {
            if program.func_body(func).is_none() {
                continue;
            }
            let start = graph.calls.len();
            // Calls outside of functions are ignored.
            while calls.next_if(|&(op, _)| program.kind(op) != OpKind::Func).is_some() {}
            while let Some((_, call)) = calls.next_if(|&(op, _)| op == program.func_op(func)) {
                graph.calls.push(call);
            }
            graph.ranges[func.index()] = Some((start as u32, graph.calls.len() as u32));
        }
        let callees: Vec<FuncId> = graph
            .calls
            .iter()
            .map(|&call| match program.payload(call) {
                Some(Payload::Call(name)) => symbols.function(*name).unwrap_or_default(),
                _ => FuncId::NONE,
            })
            .collect();
        graph.search(&functions, &callees, program.num_func_ids());
        if program.has_any(&CALLS[1..]) {
            graph.drop_calls_of_pipelines(program);
        }
        graph
    }

    /// Drops calls other than `func.call`, which affect only the order of functions.
    fn drop_calls_of_pipelines(&mut self, program: &Program) {
        let all = std::mem::take(&mut self.calls);
        for range in self.ranges.iter_mut().flatten() {
            let (start, end) = *range;
            let first = self.calls.len() as u32;
            let own = all[start as usize..end as usize].iter();
            self.calls.extend(own.filter(|&&call| program.kind(call) == OpKind::Call));
            *range = (first, self.calls.len() as u32);
        }
    }

    /// Fills `post_order` and `circular`.
    fn search(&mut self, functions: &[FuncId], callees: &[FuncId], bound: usize) {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut states = vec![State::New; bound];
        let mut stack: Vec<(FuncId, u32, u32)> = Vec::new();
        for &root in functions {
            let Some((start, end)) = self.ranges[root.index()] else { continue };
            if states[root.index()] != State::New {
                continue;
            }
            states[root.index()] = State::Open;
            stack.push((root, start, end));
            while let Some((func, next, end)) = stack.last_mut() {
                if next == end {
                    states[func.index()] = State::Done;
                    self.post_order.push(*func);
                    stack.pop();
                    continue;
                }
                let callee = callees[*next as usize];
                *next += 1;
                if callee.is_none() {
                    continue;
                }
                match states[callee.index()] {
                    State::New => {
                        if let Some((start, end)) = self.ranges[callee.index()] {
                            states[callee.index()] = State::Open;
                            stack.push((callee, start, end));
                        }
                    }
                    State::Open => self.circular.push(self.calls[*next as usize - 1]),
                    State::Done => {}
                }
            }
        }
    }

    /// The calls in `func` in program order.
    pub fn calls(&self, func: FuncId) -> &[OpId] {
        let range = self.ranges.get(func.index()).copied().flatten();
        range.map_or(&[], |(start, end)| &self.calls[start as usize..end as usize])
    }

    /// Whether no function calls itself, directly or through others.
    pub fn is_acyclic(&self) -> bool {
        self.circular.is_empty()
    }

    /// Fails at a call that closes a cycle, if there is one.
    pub fn check_acyclic(&self, program: &Program) -> Result<()> {
        let Some(&call) = self.circular.first() else { return Ok(()) };
        let name = match program.payload(call) {
            Some(&Payload::Call(name)) => program.str(name),
            _ => "",
        };
        let message = format!("function @{name} calls itself, directly or through others");
        let diagnostic = mistake(program, call, Code::RecursiveCall, message);
        Err(diagnostic.with_hint("write the recursion as a stablehlo.while").into())
    }
}
