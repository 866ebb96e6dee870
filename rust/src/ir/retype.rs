//! Signatures of functions without their shardings, and with other types.

use super::Program;
use crate::index::{FuncId, ShardingId, TypeId};

impl Program {
    /// Has argument `index` of `func` be of type `ty` in its signature.
    pub fn set_func_arg_type(&mut self, func: FuncId, index: usize, ty: TypeId) {
        let port = self.functions[func].args.position(index);
        self.set_port_type(func, port, ty);
    }
    /// Has result `index` of `func` be of type `ty` in its signature.
    pub fn set_func_result_type(&mut self, func: FuncId, index: usize, ty: TypeId) {
        let port = self.functions[func].results.position(index);
        self.set_port_type(func, port, ty);
    }
    fn set_port_type(&mut self, func: FuncId, port: usize, ty: TypeId) {
        self.ports[port].ty = ty;
        self.update_types(self.func_op(func));
    }
    /// Takes the shardings of all values, arguments, results and ops away.
    pub fn drop_shardings(&mut self) {
        self.transform_shardings(|_, _| ShardingId::NONE);
        for op in self.op_ids() {
            self.remove_no_result_shardings(op);
        }
    }
}
