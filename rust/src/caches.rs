//! What the process remembers across programs.
//!
//! | cache | what it holds | by what it is found | bound | where |
//! | --- | --- | --- | --- | --- |
//! | `rules` | the sharding rules of families | the text of an op's signature, plain or conservative, with or without CHLO | 2^15 signatures a table, 16 MiB of their text | [`crate::rules::cache`] |
//! | `answers` | what users' functions answered | the function and an op's signature | 2^14 answers, 32 MiB | [`crate::rules::answers`] |
//! | `visits` | what visits of ops do | rule, mesh and shardings | 2^15 visits | [`crate::propagation::visit_cache`] |
//!
//! Results do not depend on what is remembered, only how long it takes to get them. A program has tables of its
//! own besides, which live as long as it does.
//!
//! [`clear`] forgets everything; a run that has taken a cache along does not bring back what it knew before.
//!
//! Runs take rules and visits along rather than share them, see [`crate::kept`], and no lock of a cache is waited
//! for: a process that is forked while another thread is at work on a cache may go without it, and never
//! hangs.

use crate::propagation::visit_cache as visits;
use crate::rules::{answers, cache as rules};

/// How much a cache holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// What it holds.
    pub name: &'static str,
    /// How many of them.
    pub entries: usize,
    /// The most that there may be.
    pub max_entries: usize,
}

/// How much each cache holds.
pub fn sizes() -> [Size; 3] {
    let rules = Size {
        name: "rules",
        entries: rules::len(),
        max_entries: rules::NUM_TABLES * rules::MAX_ENTRIES,
    };
    let answers =
        Size { name: "answers", entries: answers::len(), max_entries: answers::MAX_ENTRIES };
    let visits = Size { name: "visits", entries: visits::len(), max_entries: visits::MAX_VISITS };
    [rules, answers, visits]
}

/// Forgets everything.
pub fn clear() {
    rules::clear();
    answers::clear();
    visits::clear();
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
        let pipeline = Pipeline::parse("builtin.module(sdy-propagation-pipeline)").unwrap();
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
        assert_eq!(sizes().map(|size| size.name), ["rules", "answers", "visits"]);
    }
}
