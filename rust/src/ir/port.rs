//! The arguments and results of functions: rows of one table, so that a function costs no allocation.

use super::op::{Attr, AttrRange};
use super::{Program, Span};
use crate::index::{FuncId, ShardingId, TypeId};

/// An argument or a result of a function.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// Its type; for an argument of a function with a body, the type of the block argument.
    pub ty: TypeId,
    /// The sharding of a result, or of an argument of a declaration (with a body it is on the block
    /// argument).
    pub sharding: ShardingId,
    /// The type of all devices, of a result whose sharding is left to the compiler; [`TypeId::NONE`] of others.
    pub open: TypeId,
    /// Its other attributes.
    pub attrs: AttrRange,
}

impl Port {
    /// A port of which only the type is known.
    pub fn of_type(ty: TypeId) -> Self {
        let attrs = AttrRange::default();
        Self { ty, sharding: ShardingId::NONE, open: TypeId::NONE, attrs }
    }
}

/// A run of ports in the program's table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortRange {
    start: u32,
    len: u32,
}

impl PortRange {
    fn positions(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
    /// The position of the `index`-th port in the table.
    pub(super) fn position(self, index: usize) -> usize {
        debug_assert!(index < self.len as usize);
        self.start as usize + index
    }
    /// This range extended by the port at `position`, which follows it.
    fn with_last(self, position: usize) -> Self {
        let last = position as u32;
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
    /// The results of `func`.
    #[inline]
    pub fn func_results(&self, func: FuncId) -> &[Port] {
        &self.ports[self.functions[func].results.positions()]
    }
    /// Adds an argument to `func`, which must be the function that the last port was added to.
    pub(crate) fn push_func_arg(&mut self, func: FuncId, port: Port, dict: Span) {
        let position = self.push_port(port, dict);
        let range = &mut self.functions[func].args;
        *range = range.with_last(position);
    }
    /// Adds a result to `func`, which must be the function that the last port was added to.
    pub(crate) fn push_func_result(&mut self, func: FuncId, port: Port) {
        let position = self.push_port(port, Span::EMPTY);
        let range = &mut self.functions[func].results;
        *range = range.with_last(position);
    }
    /// Copies of the ports in `range`.
    pub(super) fn clone_ports(&mut self, range: PortRange) -> PortRange {
        let start = self.ports.len() as u32;
        self.ports.extend_from_within(range.positions());
        self.printing.port_dicts.extend_from_within(range.positions());
        PortRange { start, len: range.len }
    }
    /// The sharding of argument `index` of `func`, wherever it is stored: on the block argument, or on the
    /// port if there is no body.
    pub fn func_arg_sharding(&self, func: FuncId, index: usize) -> ShardingId {
        match self.func_body(func).get() {
            Some(body) => self.sharding(self.block_arg(body, index)),
            None => self.func_args(func)[index].sharding,
        }
    }
    /// Sets the sharding of argument `index` of `func`, a declaration; true if that changed it.
    pub fn set_declared_arg_sharding(
        &mut self,
        func: FuncId,
        index: usize,
        sharding: ShardingId,
    ) -> bool {
        let port = self.functions[func].args.position(index);
        self.set_port_sharding(func, port, sharding)
    }
    /// Sets the sharding of result `index` of `func`; true if that changed it.
    pub fn set_func_result_sharding(
        &mut self,
        func: FuncId,
        index: usize,
        sharding: ShardingId,
    ) -> bool {
        let port = self.functions[func].results.position(index);
        self.set_port_sharding(func, port, sharding)
    }
    /// Notes which results of the entry function have a sharding by now, as `is_given` says; that of others is left to the compiler.
    pub fn note_open_results(&mut self, is_given: impl Fn(FuncId, usize) -> bool) {
        let Some(func) = self.entry_function() else { return };
        let positions = self.functions[func].results.positions();
        for (index, port) in self.ports[positions].iter_mut().enumerate() {
            port.open = if is_given(func, index) { TypeId::NONE } else { port.ty };
        }
    }
    fn set_port_sharding(&mut self, func: FuncId, port: usize, sharding: ShardingId) -> bool {
        let old = std::mem::replace(&mut self.ports[port].sharding, sharding);
        if old != sharding {
            self.mark_attrs_changed(self.functions[func].op);
        }
        old != sharding
    }
    /// Sets attribute `name` of argument `index` of `func` to `value`, a text as MLIR prints it.
    pub fn set_arg_attr(&mut self, func: FuncId, index: usize, name: &str, value: &str) {
        let port = self.functions[func].args.position(index);
        self.set_port_attr(func, port, name, value);
    }
    /// Sets attribute `name` of result `index` of `func` to `value`, a text as MLIR prints it.
    pub fn set_result_attr(&mut self, func: FuncId, index: usize, name: &str, value: &str) {
        let port = self.functions[func].results.position(index);
        self.set_port_attr(func, port, name, value);
    }
    fn set_port_attr(&mut self, func: FuncId, port: usize, name: &str, value: &str) {
        self.ports[port].attrs = self.with_attr(self.ports[port].attrs, name, value);
        self.mark_attrs_changed(self.functions[func].op);
    }
    /// Removes those attributes from argument `index` of `func` whose names `is_kept` does not accept.
    pub fn retain_arg_attrs(&mut self, func: FuncId, index: usize, is_kept: impl Fn(&str) -> bool) {
        let port = self.functions[func].args.position(index);
        self.retain_port_attrs(func, port, is_kept);
    }
    /// Removes those attributes from result `index` of `func` whose names `is_kept` does not accept.
    pub fn retain_result_attrs(
        &mut self,
        func: FuncId,
        index: usize,
        is_kept: impl Fn(&str) -> bool,
    ) {
        let port = self.functions[func].results.position(index);
        self.retain_port_attrs(func, port, is_kept);
    }
    fn retain_port_attrs(&mut self, func: FuncId, port: usize, is_kept: impl Fn(&str) -> bool) {
        let old = self.attr_list(self.ports[port].attrs);
        let is_kept = |attr: &&Attr| is_kept(self.strings.get(attr.name));
        let kept: Vec<Attr> = old.iter().filter(is_kept).copied().collect();
        if kept.len() < old.len() {
            self.ports[port].attrs = self.add_attrs(&kept);
            self.mark_attrs_changed(self.functions[func].op);
        }
    }
}
