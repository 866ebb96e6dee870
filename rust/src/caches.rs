//! The caches of the process, which outlive programs.
//!
//! | cache | values | key | bound | module |
//! | --- | --- | --- | --- | --- |
//! | `rules` | the sharding rules of families | the text of an op's signature, plain or conservative, with or without CHLO | 2^15 signatures a table, 16 MiB of their text | [`crate::rules::cache`] |
//! | `answers` | the rules that users' functions returned | the function and an op's signature | 2^14 answers, 32 MiB | [`crate::rules::answers`] |
//! | `visits` | the results of visits of ops | rule, mesh and shardings | 2^15 visits | [`crate::propagation::visit_cache`] |
//! | `kernels` | kernels of GPUs, and what fusing one into another saves | what the kernels compute, and the sizes of what they read | 2^14 kernels, 2^17 pairs | [`crate::compilers::xla_gpu::priority_fusion::known_kernels`] |
//! | `rules` | which ops were found valid | the text of an op's signature | 2^15 signatures, 16 MiB of their text | [`crate::stablehlo::verified`] |
//!
//! Each cache but `answers` has a table for each simultaneous run, up to
//! [`crate::memoization::MAX_TABLES`]. The bounds are those of one table, and [`sizes`] gives the
//! size of the largest table.
//!
//! Results do not depend on the caches, only the time to compute them does. In addition, a program has tables of
//! its own, which are freed with it.
//!
//! [`clear`] empties all caches; a run that has taken a cache before does not restore its entries.
//!
//! A run takes these caches out of the process for its duration, see [`crate::memoization`], and never
//! blocks on the lock of a cache: a process that is forked while another thread uses a cache may run without that
//! cache, but does not hang.

use crate::compilers::xla_gpu::priority_fusion::known_kernels as kernels;
use crate::ir::MAX_ENTRIES;
use crate::propagation::visit_cache as visits;
use crate::rules::{answers, cache as rules};
use crate::stablehlo::verified;

/// The size of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// The name of the cache.
    pub name: &'static str,
    /// The number of entries.
    pub entries: usize,
    /// The most entries.
    pub max_entries: usize,
}

/// The size of each cache.
pub fn sizes() -> [Size; 4] {
    let rules = Size {
        name: "rules",
        entries: rules::len() + verified::len(),
        max_entries: (rules::NUM_TABLES + 1) * MAX_ENTRIES,
    };
    let answers =
        Size { name: "answers", entries: answers::len(), max_entries: answers::MAX_ENTRIES };
    let visits = Size { name: "visits", entries: visits::len(), max_entries: visits::MAX_VISITS };
    let kernels =
        Size { name: "kernels", entries: kernels::len(), max_entries: kernels::MAX_KERNELS };
    [rules, answers, visits, kernels]
}

/// Empties all caches.
pub fn clear() {
    rules::clear();
    answers::clear();
    visits::clear();
    kernels::clear();
    verified::clear();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Context, Limits, Progress};
    use crate::mlir;
    use crate::pipeline::Pipeline;
    use crate::rules::Registry;

    fn propagate(text: &str) {
        let mut program = mlir::parse(text.into()).unwrap();
        let mut rules = Registry::builtin();
        let mut report = |_: Progress<'_>| true;
        let mut context = Context::new(&mut rules, Limits::default(), &mut report);
        let pipeline =
            Pipeline::parse("builtin.module(sdy-propagation-pipeline)", program.shardy()).unwrap();
        pipeline.run(&mut program, &mut context).unwrap();
    }

    #[test]
    fn caches_hold_no_more_than_they_say() {
        let text = "sdy.mesh @mesh = <[\"x\"=2]>\nfunc.func @main(%a: tensor<8xf32> \
                    {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> tensor<8xf32> {\n\
                    %0 = stablehlo.abs %a : tensor<8xf32>\nreturn %0 : tensor<8xf32>\n}\n";
        propagate(text);
        assert!(sizes().iter().all(|size| size.entries <= size.max_entries));
        clear();
        propagate(text);
        assert_eq!(sizes().map(|size| size.name), ["rules", "answers", "visits", "kernels"]);
    }
}
