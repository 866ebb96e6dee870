//! `sdy-close-shardings`: closes every dim of every sharding and drops replicated axes.

use crate::context::Context;
use crate::error::Result;
use crate::index::{Id, ShardingId};
use crate::ir::{Port, Program};

/// Runs the pass on the module.
pub fn run(program: &mut Program, _context: &mut Context) -> Result<()> {
    program.transform_shardings(|program, sharding| {
        let closed = program.shardings[sharding].closed();
        program.shardings.intern(closed)
    });
    Ok(())
}

impl Program {
    /// Replaces every sharding in the program by what `transform` makes of it; asked once for each.
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
        for value in self.values.ids() {
            let old = self.sharding(value);
            if let Some(&new) = images.get(old.index()) {
                self.set_sharding(value, new);
            }
        }
        for func in self.functions.ids() {
            let mut changed = false;
            let mut replace = |ports: &mut [Port]| {
                for Port { sharding, .. } in ports {
                    changed |= image(*sharding) != *sharding;
                    *sharding = image(*sharding);
                }
            };
            replace(self.func_args_mut(func));
            replace(self.func_results_mut(func));
            if changed {
                self.mark_attrs_changed(self.functions[func].op);
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
