//! Copies ops from another program.

use super::{ElementType, NewOp, Place, Program, Type, ValueMap};
use crate::index::{OpId, RegionId, TypeId, ValueId};

impl Program {
    /// Copies `op` of the program `from`, with everything inside it, to `place`. Operands are
    /// mapped by `map`, whose keys are values of `from`; results and inner block arguments are
    /// added to it. The copy is in MLIR's generic form, so that `from` has to be parsed from that
    /// form, without aliases of attributes and locations.
    ///
    /// `None` if the copy is not possible: `op` uses a value that `map` lacks, or an op inside has
    /// a payload, such as a call's callee, which has a meaning in its own program only.
    pub fn graft_op(
        &mut self,
        from: &Self,
        op: OpId,
        map: &mut ValueMap,
        place: Place,
    ) -> Option<OpId> {
        if from.payload(op).is_some() {
            return None;
        }
        let operands: Vec<ValueId> =
            from.operands(op).map(|value| map.get(value)).collect::<Option<_>>()?;
        let results: Vec<TypeId> =
            from.op_results(op).map(|value| self.graft_type(from, from.type_of(value))).collect();
        let mut new = NewOp::new(from.op_name(op), &operands, &results);
        for attr in from.op_attrs(op) {
            new = new.attr(from.str(attr.name), from.text().get(attr.value));
        }
        let regions: Vec<RegionId> = from.op_regions(op).collect();
        let copy = self.create_op(new.regions(regions.len()));
        let loc = self.text.add_once(from.text().get(from.loc(op)));
        self.printing.ops[copy].loc = loc;
        self.insert_op(copy, place);
        for (index, &region) in regions.iter().enumerate() {
            for block in from.region_blocks(region) {
                let args: Vec<ValueId> = from.block_args(block).collect();
                let types: Vec<TypeId> =
                    args.iter().map(|&arg| self.graft_type(from, from.type_of(arg))).collect();
                let inside = self.add_block(self.region(copy, index), &types);
                for (arg, new) in args.into_iter().zip(self.block_args(inside)) {
                    map.insert(arg, new);
                }
                for op in from.block_ops(block) {
                    self.graft_op(from, op, map, Place::End(inside))?;
                }
            }
        }
        for (old, new) in from.op_results(op).zip(self.op_results(copy)) {
            map.insert(old, new);
        }
        Some(copy)
    }
    /// The type `ty` of the program `from`, in this one.
    pub fn graft_type(&mut self, from: &Self, ty: TypeId) -> TypeId {
        let copy = match &from.types()[ty] {
            Type::RankedTensor { shape, element, encoding } => {
                let element =
                    ElementType { text: self.intern(from.str(element.text)), bits: element.bits };
                let encoding = encoding.map(|text| self.intern(from.str(text)));
                Type::RankedTensor { shape: shape.clone(), element, encoding }
            }
            Type::MeshTensor { shape, tensor, text } => Type::MeshTensor {
                shape: shape.clone(),
                tensor: self.graft_type(from, *tensor),
                text: self.intern(from.str(*text)),
            },
            Type::UnrankedTensor(text) => Type::UnrankedTensor(self.intern(from.str(*text))),
            Type::Tuple(parts) => {
                Type::Tuple(parts.iter().map(|&part| self.graft_type(from, part)).collect())
            }
            Type::Other(text) => Type::Other(self.intern(from.str(*text))),
        };
        self.intern_type(copy, from.type_text(ty))
    }
}
