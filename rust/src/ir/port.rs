//! The arguments and results of functions: rows of one table, so that a function costs no allocation.

use super::op::{Attr, AttrRange};
use super::{Program, Span};
use crate::index::{FuncId, ShardingId, TypeId};

/// An argument or a result of a function.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// Its type; for an argument of a function with a body the same as its block's.
    pub ty: TypeId,
    /// The sharding of a result, or of an argument of a declaration (with a body it is on the block
    /// argument).
    pub sharding: ShardingId,
    /// Its other attributes.
    pub attrs: AttrRange,
    /// The dictionary of an argument in the text, or where one would be inserted.
    pub dict: Span,
}

impl Port {
    /// A port of which only the type is known.
    pub fn of_type(ty: TypeId) -> Self {
        let attrs = AttrRange::default();
        Self { ty, sharding: ShardingId::NONE, attrs, dict: Span::EMPTY }
    }
}

/// A run of ports in the program's table.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortRange {
    start: u32,
    len: u32,
}

impl PortRange {
    fn positions(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
    /// The same with the port at the end of a table of `len` that was just put there.
    fn with_last(self, len: usize) -> Self {
        let last = len as u32 - 1;
        debug_assert!(self.len == 0 || self.start + self.len == last);
        Self { start: last - self.len, len: self.len + 1 }
    }
}

impl Program {
    /// The arguments of `func`.
    #[inline]
    pub fn func_args(&self, func: FuncId) -> &[Port] {
        &self.ports[self.functions[func].args.positions()]
    }
    /// The same, to be changed.
    pub fn func_args_mut(&mut self, func: FuncId) -> &mut [Port] {
        &mut self.ports[self.functions[func].args.positions()]
    }
    /// The results of `func`.
    #[inline]
    pub fn func_results(&self, func: FuncId) -> &[Port] {
        &self.ports[self.functions[func].results.positions()]
    }
    /// The same, to be changed.
    pub fn func_results_mut(&mut self, func: FuncId) -> &mut [Port] {
        &mut self.ports[self.functions[func].results.positions()]
    }
    /// Gives `func`, to which the last port was added too, one more argument.
    pub fn add_func_arg(&mut self, func: FuncId, port: Port) {
        self.ports.push(port);
        let range = &mut self.functions[func].args;
        *range = range.with_last(self.ports.len());
    }
    /// The same for a result.
    pub fn add_func_result(&mut self, func: FuncId, port: Port) {
        self.ports.push(port);
        let range = &mut self.functions[func].results;
        *range = range.with_last(self.ports.len());
    }
    /// Copies of the ports in `range`.
    pub(super) fn clone_ports(&mut self, range: PortRange) -> PortRange {
        let start = self.ports.len() as u32;
        self.ports.extend_from_within(range.positions());
        PortRange { start, len: range.len }
    }
    /// Sets attribute `name` of argument `index` of `func` to `value`, a text as MLIR prints it.
    pub fn set_arg_attr(&mut self, func: FuncId, index: usize, name: &str, value: &str) {
        let range = self.func_args(func)[index].attrs;
        self.func_args_mut(func)[index].attrs = self.with_attr(range, name, value);
        self.mark_attrs_changed(self.functions[func].op);
    }
    /// The same for result `index`.
    pub fn set_result_attr(&mut self, func: FuncId, index: usize, name: &str, value: &str) {
        let range = self.func_results(func)[index].attrs;
        self.func_results_mut(func)[index].attrs = self.with_attr(range, name, value);
        self.mark_attrs_changed(self.functions[func].op);
    }
    /// The dictionary at `range` with attribute `name` set to `value`.
    fn with_attr(&mut self, range: AttrRange, name: &str, value: &str) -> AttrRange {
        let name = self.strings.intern(name);
        let attr = Attr { name, value: self.text.add(value) };
        let mut list = self.attr_list(range).to_vec();
        match list.iter_mut().find(|old| old.name == name) {
            Some(old) => *old = attr,
            None => list.push(attr),
        }
        self.add_attrs(&list)
    }
}
