//! Shardings against the types of their values.

use super::Verifier;
use crate::error::{Code, Span};
use crate::index::{FuncId, OpId, ShardingId, TypeId};
use crate::ir::{OpKind, Type};

/// What a sharding is checked against.
enum Shape {
    /// A ranked tensor of this many dims.
    Rank(usize),
    /// Not a tensor.
    NoTensor,
    /// What it is does not say.
    Unknown,
    /// Something that has no shardings, with what it is.
    Never(&'static str),
}

impl Verifier<'_> {
    /// Checks the shardings of what `op` defines.
    pub(super) fn values(&mut self, op: OpId) {
        let num_results = self.program.ops[op].num_results;
        let mut checked = ShardingId::NONE;
        let mut checked_type = TypeId::NONE;
        for (i, value) in self.program.op_results(op).enumerate() {
            let (sharding, ty) = (self.program.sharding(value), self.program.values[value].ty);
            if sharding.is_none() || (sharding, ty) == (checked, checked_type) {
                continue;
            }
            (checked, checked_type) = (sharding, ty);
            let what = if num_results == 1 { "its result".into() } else { format!("result {i}") };
            let span = |this: &Self| this.sharding_span(op);
            self.sharding(op, sharding, ty, &what, span);
            self.bound_axes(op, sharding);
        }
        match self.program.kind(op) {
            OpKind::Func => self.function(op),
            OpKind::ManualComputation | OpKind::NamedComputation => self.body_args(op),
            _ => {}
        }
        if let Some(shardings) = self.program.no_result_shardings.get(&op) {
            self.without_results(op, shardings);
        }
    }
    /// Checks `sharding`, of a value of type `ty` that `op` defines.
    fn sharding(
        &mut self,
        op: OpId,
        sharding: ShardingId,
        ty: TypeId,
        what: &str,
        span: impl Fn(&Self) -> Option<Span>,
    ) {
        let Some(row) = self.program.shardings.get(sharding) else { return };
        if self.program.mesh(row.mesh).is_maximal() {
            return;
        }
        let (message, hint) = match self.shape(ty) {
            Shape::Unknown => return,
            Shape::Rank(rank) if rank == row.dims.len() => return,
            Shape::Rank(rank) => {
                let dims = row.dims.len();
                let message =
                    format!("the sharding of {what} has {dims} dims, the tensor has {rank}");
                (message, Some("one {...} for each dim, {} for a dim that is not sharded"))
            }
            Shape::NoTensor if row.dims.is_empty() && row.has_no_axes() => return,
            Shape::NoTensor => {
                (format!("{what} is no tensor, so its sharding has no dims and no axes"), None)
            }
            Shape::Never(kind) => (format!("{what} is {kind}, which has no sharding"), None),
        };
        let span = span(self).or_else(|| self.name_span(op));
        self.complain_at(span, op, Code::InvalidSharding, message);
        if let Some(hint) = hint {
            self.hint(hint);
        }
    }
    fn shape(&self, ty: TypeId) -> Shape {
        match &self.program.types[ty] {
            Type::RankedTensor { shape, .. } => Shape::Rank(shape.len()),
            Type::UnrankedTensor(_) => Shape::Never("a tensor without a rank"),
            Type::Tuple(items) => match items[..] {
                [item] => self.shape(item),
                _ => Shape::Never("a tuple of other than one value"),
            },
            Type::Other(text) => {
                let text = self.program.strings.get(*text);
                let is_shaped = text.starts_with("memref<") || text.starts_with("vector<");
                if is_shaped {
                    Shape::Unknown
                } else {
                    Shape::NoTensor
                }
            }
        }
    }
    /// An op without results may have one sharding that has nothing to say about dims.
    fn without_results(&mut self, op: OpId, shardings: &[ShardingId]) {
        let sound = match shardings {
            [] => true,
            [only] => self
                .program
                .shardings
                .get(*only)
                .is_some_and(|sharding| sharding.dims.is_empty() && sharding.has_no_axes()),
            _ => false,
        };
        if !sound {
            let message = "an op without results has at most one sharding, without dims and axes";
            self.complain(op, Code::InvalidSharding, message);
        }
    }
    /// Checks the shardings of arguments and results of a function.
    fn function(&mut self, op: OpId) {
        let Some(id) = self.program.function_of(op).get() else { return };
        let function = &self.program.functions[id];
        let (arg_types, result_types) = (&function.arg_types, &function.result_types);
        let arg_shardings: Vec<ShardingId> = if function.body.is_some() {
            let args = self.program.block_args(function.body);
            args.map(|arg| self.program.sharding(arg)).collect()
        } else {
            function.declared_arg_shardings.clone()
        };
        for (i, (&ty, sharding)) in arg_types.iter().zip(arg_shardings).enumerate() {
            let span = |this: &Self| this.arg_sharding_span(id, i);
            self.sharding(op, sharding, ty, &format!("argument {i}"), span);
        }
        let mut num_before = 0;
        for (i, (&ty, &sharding)) in result_types.iter().zip(&function.result_shardings).enumerate()
        {
            let span = |this: &Self| this.result_sharding_span(id, num_before);
            self.sharding(op, sharding, ty, &format!("result {i}"), span);
            num_before += usize::from(sharding.is_some());
        }
        self.body_types(op, id);
    }
    /// A function's body has the arguments that its type says.
    fn body_types(&mut self, op: OpId, id: FuncId) {
        let function = &self.program.functions[id];
        if function.body.is_none() {
            return;
        }
        let args = self.program.block_args(function.body);
        let same = args.len() == function.arg_types.len();
        if !same {
            let (have, need) = (args.len(), function.arg_types.len());
            let message = format!("its body has {have} arguments, its type has {need}");
            self.complain(op, Code::TypeMismatch, message);
        }
    }
    /// Checks the in-shardings of a manual or named computation, which are for its operands.
    fn body_args(&mut self, op: OpId) {
        let Some(region) = self.program.op_regions(op).next() else { return };
        let Some(block) = self.program.region_entry(region).get() else { return };
        let operands = self.program.op_operands(op);
        let pairs: Vec<_> = self.program.block_args(block).zip(operands).collect();
        for (i, (arg, operand)) in pairs.into_iter().enumerate() {
            let (sharding, ty) =
                (self.program.sharding(arg), self.program.values[operand.value].ty);
            let span = |this: &Self| this.attr_span(op, "in_shardings");
            self.sharding(op, sharding, ty, &format!("operand {i}"), span);
            self.bound_axes(op, sharding);
        }
    }
}
