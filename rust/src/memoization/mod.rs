//! What is kept between computations, and why the results are the same without it.
//!
//! Everything that is kept follows one pattern:
//!
//! - **Inputs.** A derived value is kept with all that it was computed from. A function that reads anything else is not memoized.
//! - **Derived value.** It is used again where all inputs are equal, and computed anew otherwise. It never changes once it is
//!   made: what depends on it may keep it.
//! - **Revision.** What is not an input is constant while the value may be used. Whoever changes it (a rule that is registered, a
//!   cleared cache) advances a number, and values of another number are not used.
//!
//! Inputs are compared in one of four ways, from the most general to the cheapest:
//!
//! | kind | inputs | revision | dropped |
//! | --- | --- | --- | --- |
//! | [`Memo`]: a table | a key that has all inputs, as contents or as ids of tables that only grow | the table's owner | with its owner, or when full |
//! | [`CacheSlot`]: a table that outlives programs | a key by content, since ids differ between programs | the slot's generation, or one slot for each version and option | by [`CacheSlot::clear`] |
//! | a recording: visits in their order | the shardings that each visit read. A visit whose inputs are equal is not repeated, nor is what reads only such visits ("early cutoff") | the version of the registry of rules, the options | when others are nearer |
//! | [`std::sync::OnceLock`] in an immutable owner | the owner | the owner is never changed: an edit makes another one | with its owner |
//!
//! # Uses
//!
//! | derived values | kind | inputs | module |
//! | --- | --- | --- | --- |
//! | sharding rules of ops | slot | text of the signature; options and version choose the slot | [`crate::rules::cache`] |
//! | rules that users' functions return | table of the process | number of the function, signature as bytes | [`crate::rules::answers`] |
//! | valid ops | slot | text of the signature; the version chooses the slot | [`crate::stablehlo::verified`] |
//! | representatives of equivalent rules | memo | what a visit can tell of a rule | `propagation/memo/rule_equivalence.rs` |
//! | outcomes of visits, in one propagation | memo | class of the rule, shardings, by ids | `propagation/memo/lookup.rs` |
//! | outcomes of visits, across programs | slot | rule, mesh and shardings, by content | [`crate::propagation::visit_cache`] |
//! | shardings after an edit | recording | shardings that visits read | [`crate::propagation::replay`] |
//! | recorded runs of a session | list of the last ones | annotations, options, version of rules | `python/session_runs.rs` |
//! | constants that export may merge | once | the imported program | [`crate::session::Prepared`] |
//! | how ops are partitioned, in one program | table | signature, rule, placements and facts, by ids | `spmd/lower/choice/decision_cache.rs` |
//! | the same, across programs | slot of a session | the same by content | `spmd/lower/choice/shared_decision_cache.rs` |
//! | plans of reshards | slot of a session | two placements, shape, abilities | `spmd/reshard/plan_cache.rs` |
//! | what fusing kernels of GPUs saves, and makes of them | slot | content of the kernels, operands that both read | `compilers/xla_gpu/priority_fusion/known_kernels.rs` |
//! | work and compute units of ops | memo | signature and local tensors, of the op and of the ops in its regions, by ids | [`crate::work::cached`] |
//! | the same, of ops whose values have the types of their signature | table | signature, and the ops in regions | [`crate::work::cached`] |
//! | fused kernels, peaks, sequences of a program | once | the local program and the compiler | `python/compiled.rs` |
//! | per-device programs in use | weak table, in Python | result, policy, version of rules | `partition/counted.py` |
//! | the same after a compiler's passes | weak table, in Python | the program before, the passes | `costs/improve.py` |
//! | completed programs and costs of a result | once, in Python | annotations, rules, options | `python/once.rs` |
//!
//! # Soundness
//!
//! Ids may be in a key only if the table that they refer to lives as long as the memo and only grows, so that an id never gets
//! another meaning. Keys that outlive their program have contents: `is_portable` refuses texts with aliases, which mean something
//! else in another program.
//!
//! A full table takes no more values, or is emptied as a whole. Eviction by age would not help a program whose inputs all differ,
//! and would make time depend on order. Results depend on neither.
//!
//! Tests compare results with and without what is kept: `tests/session` (20,000 random edits beside new runs),
//! `tests/unit/test_caches.py`, and the seeded faults of `tests/session/seeded.py`, such as a value that is handed to another owner.
//!
//! Source: what Rust's `salsa` and build systems call inputs, derived queries, revisions and early cutoff.

mod cache_slot;
mod memo;

pub use cache_slot::{CacheSlot, Taken, MAX_TABLES};
pub use memo::Memo;
