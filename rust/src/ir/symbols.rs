//! The symbols of a module, and fresh names for new functions.
//!
//! Source: the naming of MLIR's `SymbolTable::insert`: a name that is taken gets `_` and the next
//! number of a counter that the whole table shares, so that `n` clashes cost `n` look-ups.

use super::{Payload, Program};
use crate::index::{FuncId, Id, IdVec, OpId, StrId};

/// Whether some attribute may name a symbol; looks at each attribute once.
#[derive(Clone, Debug, Default)]
pub(super) struct SymbolAttrs {
    seen: usize,
    is_found: bool,
}

impl Program {
    /// Records that the attributes from `start` on have texts that occurred before and need no
    /// search.
    pub(crate) fn skip_repeated_attrs(&mut self, start: u32) {
        if self.symbol_attrs.seen == start as usize {
            self.symbol_attrs.seen = self.attrs.len();
        }
    }
    /// The symbol name of `op`, if it defines a symbol.
    pub fn symbol_of(&self, op: OpId) -> Option<&str> {
        match self.payload(op) {
            Some(Payload::Function(id)) => Some(self.str(self.func_name(*id))),
            Some(Payload::Mesh(id)) => self.meshes()[*id].symbol.map(|name| self.str(name)),
            _ => self.attr(op, "sym_name").map(|name| name.trim_matches('"')),
        }
    }
    /// Whether the text of any attribute has an `@`.
    pub fn has_symbol_attrs(&mut self) -> bool {
        let state = &mut self.symbol_attrs;
        let new = self.attrs.get(state.seen..).unwrap_or_default();
        state.seen = self.attrs.len();
        state.is_found = state.is_found
            || new.iter().any(|attr| self.text.get(attr.value).as_bytes().contains(&b'@'));
        state.is_found
    }
}

/// The names of the symbols that `text`, an attribute, refers to, without `@` and quotes: `@a` and
/// `@"a"` give `a`.
pub fn symbols_in(text: &str) -> impl Iterator<Item = &str> {
    memchr::memchr_iter(b'@', text.as_bytes()).map(|at| symbol_name(&text[at + 1..]))
}

/// The name that follows an `@`: bare or in quotes.
fn symbol_name(text: &str) -> &str {
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.split('"').next().unwrap_or_default();
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.' | '-');
    text.split(|c| !is_name(c)).next().unwrap_or_default()
}

/// The symbols of a module: those that it has when the table is made, and functions inserted since.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable {
    /// The function of each name; `Some(NONE)` is a symbol that is not a function.
    symbols: IdVec<StrId, Option<FuncId>>,
    counter: u64,
    /// Buffer for the names that are tried.
    candidate: String,
}

impl SymbolTable {
    /// All symbols of `program`: functions, meshes, and whatever else is named.
    pub fn new(program: &mut Program) -> Self {
        let mut table = Self::default();
        let mut next = program.blocks[program.module_block()].first_op;
        while let Some(op) = next.get() {
            next = program.ops[op].next;
            let func = program.function_of(op);
            let symbol = if func.is_some() {
                program.functions[func].name
            } else if let Some(name) = program.attr(op, "sym_name") {
                let name = name.trim_matches('"').to_owned();
                program.strings.intern(&name)
            } else {
                continue;
            };
            table.slot(symbol).get_or_insert(func);
        }
        for mesh in program.meshes.iter() {
            if let Some(symbol) = mesh.symbol {
                table.slot(symbol).get_or_insert(FuncId::NONE);
            }
        }
        table
    }
    /// The function called `name`.
    pub fn function(&self, name: StrId) -> Option<FuncId> {
        (*self.symbols.get(name)?)?.get()
    }
    /// Restarts the counter of fresh names, as a new table of the module would.
    pub fn restart_numbers(&mut self) {
        self.counter = 0;
    }
    fn slot(&mut self, name: StrId) -> &mut Option<FuncId> {
        if self.symbols.len() <= name.index() {
            self.symbols.resize(name.index() + 1, None);
        }
        &mut self.symbols[name]
    }
    /// Adds `func`, which is in the module, under its name or, if that is taken, under a new one.
    pub fn insert(&mut self, program: &mut Program, func: FuncId) -> StrId {
        let wanted = program.functions[func].name;
        let name = self.reserve(program, wanted, func);
        if name != wanted {
            program.functions[func].name = name;
            program.mark_attrs_changed(program.func_op(func));
        }
        name
    }
    /// Takes `wanted`, or a new name made of it, for `func` (`NONE` for another kind of symbol).
    pub fn reserve(&mut self, program: &mut Program, wanted: StrId, func: FuncId) -> StrId {
        let mut name = wanted;
        while self.slot(name).is_some() {
            self.candidate.clear();
            self.candidate.push_str(program.strings.get(wanted));
            self.candidate.push('_');
            push_number(&mut self.candidate, self.counter);
            self.counter += 1;
            name = program.strings.intern(&self.candidate);
        }
        *self.slot(name) = Some(func);
        name
    }
}

/// Appends `number` in decimal, faster than `format!`.
fn push_number(text: &mut String, number: u64) {
    if number > 9 {
        push_number(text, number / 10);
    }
    text.push((b'0' + (number % 10) as u8) as char);
}
