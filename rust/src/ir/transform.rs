//! Replaces every sharding of a program.

use super::{OpFlags, Program, ValueDef};
use crate::index::{Id, ShardingId};

impl Program {
    /// Replaces every sharding by the result of `transform`, which is called once for each distinct
    /// sharding.
    pub fn transform_shardings(
        &mut self,
        mut transform: impl FnMut(&mut Self, ShardingId) -> ShardingId,
    ) {
        let ids: Vec<ShardingId> = self.shardings.ids().collect();
        let images: Vec<ShardingId> = ids.into_iter().map(|id| transform(self, id)).collect();
        let image = |id: ShardingId| id.get().map_or(id, |id| images[id.index()]);
        if images.iter().enumerate().all(|(at, image)| image.index() == at) {
            return;
        }
        let mut shardings = std::mem::take(&mut self.value_shardings);
        for (sharding, value) in shardings.iter_mut().zip(self.values.iter()) {
            let Some(&new) = images.get(sharding.index()) else { continue };
            if std::mem::replace(sharding, new) == new {
                continue;
            }
            let owner = match value.def() {
                ValueDef::Result(op) => op,
                ValueDef::Arg(block) => self.block_parent_op(block),
            };
            self.printing.flags[owner].set(OpFlags::ATTRS_CHANGED);
        }
        self.value_shardings = shardings;
        for func in self.func_ids() {
            for index in 0..self.func_args(func).len() {
                let old = self.func_args(func)[index].sharding;
                self.set_declared_arg_sharding(func, index, image(old));
            }
            for index in 0..self.func_results(func).len() {
                let old = self.func_results(func)[index].sharding;
                self.set_func_result_sharding(func, index, image(old));
            }
        }
        let mut shardings: Vec<_> =
            std::mem::take(&mut self.no_result_shardings).into_iter().collect();
        for (op, list) in &mut shardings {
            for sharding in list {
                *sharding = image(*sharding);
            }
            self.mark_attrs_changed(*op);
        }
        self.no_result_shardings = shardings.into_iter().collect();
    }
}
