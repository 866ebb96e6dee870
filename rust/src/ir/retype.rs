//! Changes the types in functions' signatures, and removes all shardings.

use super::Program;
use crate::index::{FuncId, ShardingId, TypeId};

impl Program {
    /// Sets the type of argument `index` in the signature of `func`.
    pub fn set_func_arg_type(&mut self, func: FuncId, index: usize, ty: TypeId) {
        let port = self.functions[func].args.position(index);
        self.set_port_type(func, port, ty);
    }
    /// Sets the type of result `index` in the signature of `func`.
    pub fn set_func_result_type(&mut self, func: FuncId, index: usize, ty: TypeId) {
        let port = self.functions[func].results.position(index);
        self.set_port_type(func, port, ty);
    }
    fn set_port_type(&mut self, func: FuncId, port: usize, ty: TypeId) {
        self.ports[port].ty = ty;
        self.update_types(self.func_op(func));
    }
    /// Removes the shardings of all values, arguments, results and ops.
    pub fn drop_shardings(&mut self) {
        self.transform_shardings(|_, _| ShardingId::NONE);
        self.no_result_shardings.clear();
    }
}
