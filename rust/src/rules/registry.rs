//! The registry: the rule of every op of a program.
//!
//! Rules are made once for each signature and kept with the program, so that passes that run one after
//! the other, and clones of the program, share them. Across programs they are found again by what they
//! depend on: those of families in a [`RuleCache`], and what users' functions have answered, since
//! calling them is slow.

use super::cache::{is_portable, RuleCache, RulePair, MAX_ENTRIES};
use super::chlo;
use super::notation::Notation;
use super::table::Family;
use super::view::{Shapes, SignatureView};
use crate::attribute::{verify_rule, verify_rule_shapes};
use crate::context::RuleSource;
use crate::error::{Error, Result};
use crate::index::{OpId, RuleId, SignatureId};
use crate::ir::{EdgeSpec, Program};
use crate::rule::{OpShardingRule, RuleTable, SharedRule};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A user's function from a signature to its rule.
pub type RuleFunction = dyn Fn(&SignatureView<'_>) -> Result<Option<OpShardingRule>> + Send + Sync;

/// How a user states the rule of an op.
#[derive(Clone)]
pub enum UserRule {
    /// For any shape, as a string.
    Notation(Notation),
    /// By a function, which is called once for each signature.
    Function(Arc<RuleFunction>),
}

impl fmt::Debug for UserRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Notation(notation) => notation.fmt(f),
            Self::Function(_) => f.write_str("Function"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn intern(rules: &mut RuleTable, pair: &RulePair) -> [RuleId; 2] {
    let mut id = |rule: &Option<SharedRule>| match rule {
        Some(rule) => rules.intern_shared(rule),
        None => RuleId::NONE,
    };
    [id(&pair[0]), id(&pair[1])]
}

type Answers = FxHashMap<Vec<u8>, Option<OpShardingRule>>;

/// Where rules come from. Clones share what they know; a change to one does not show in the other.
#[derive(Clone, Debug)]
pub struct Registry {
    rules: Arc<FxHashMap<String, UserRule>>,
    edges: Arc<FxHashMap<String, EdgeSpec>>,
    answers: Arc<Mutex<Answers>>,
    /// In plain and in conservative propagation.
    caches: Arc<Mutex<[RuleCache; 2]>>,
    /// Number that is different for registries that may answer differently.
    generation: u64,
    is_conservative: bool,
    legalizes_chlo: bool,
}

/// The generation of registries without users' rules.
const BUILTIN: u64 = 1;
/// The generation of those that know CHLO besides.
const LEGALIZING_CHLO: u64 = 2;

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Registry {
    /// The rules of [`super::table`] alone.
    pub fn builtin() -> Self {
        Self {
            rules: Arc::default(),
            edges: Arc::default(),
            answers: Arc::default(),
            caches: Arc::default(),
            generation: BUILTIN,
            is_conservative: false,
            legalizes_chlo: false,
        }
    }

    /// The rules of [`super::table`], and rules for CHLO ops as in XLA, which legalizes CHLO to ops that
    /// have rules before it propagates; Shardy by itself has none.
    #[must_use]
    pub fn legalizing_chlo(mut self) -> Self {
        self.legalizes_chlo = true;
        self.caches = Arc::default();
        self.changed();
        self
    }

    /// The family of the op called `name`.
    fn family(&self, name: &str) -> Option<&'static Family> {
        let chlo = || if self.legalizes_chlo { chlo::family_of(name) } else { None };
        Family::of(name).or_else(chlo)
    }

    /// Gives the op called `name` a rule, instead of the one it may have; `None` takes the user's rule
    /// away.
    pub fn set_rule(&mut self, name: &str, rule: Option<UserRule>) {
        let rules = Arc::make_mut(&mut self.rules);
        match rule {
            Some(rule) => rules.insert(name.to_owned(), rule),
            None => rules.remove(name),
        };
        self.changed();
    }

    /// Gives the op called `name` data-flow edges; `None` takes them away.
    pub fn set_edges(&mut self, name: &str, edges: Option<EdgeSpec>) {
        let table = Arc::make_mut(&mut self.edges);
        match edges {
            Some(edges) => table.insert(name.to_owned(), edges),
            None => table.remove(name),
        };
    }

    /// Tells `program` about the data-flow edges that users have given to ops; has to be done before
    /// any pass runs.
    pub fn install_edges(&self, program: &mut Program) {
        let mut edges: Vec<(&String, &EdgeSpec)> = self.edges.iter().collect();
        edges.sort_unstable_by_key(|(name, _)| *name);
        program.set_edge_specs(edges.into_iter().map(|(name, spec)| (&**name, spec.clone())));
    }

    /// The user's rule of the op called `name`.
    pub fn user_rule(&self, name: &str) -> Option<&UserRule> {
        self.rules.get(name)
    }

    /// The names of all ops that users have given rules, sorted.
    pub fn user_rules(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.rules.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    fn changed(&mut self) {
        static NEXT: AtomicU64 = AtomicU64::new(LEGALIZING_CHLO + 1);
        self.answers = Arc::default();
        self.generation = match (self.rules.is_empty(), self.legalizes_chlo) {
            (true, false) => BUILTIN,
            (true, true) => LEGALIZING_CHLO,
            (false, _) => NEXT.fetch_add(1, Ordering::Relaxed),
        };
    }

    /// Gives signatures to ops that passes have made and that could have a rule.
    fn sign_new_ops(&self, program: &mut Program) {
        for op in program.take_new_ops() {
            if !program.lacks_signature(op) {
                continue;
            }
            let name = program.op_name(op);
            if self.family(name).is_some() || self.rules.contains_key(name) {
                program.sign_op(op);
            }
        }
    }

    /// The rules of a signature in usual and in special surroundings.
    fn rules_of(
        &self,
        program: &mut Program,
        id: SignatureId,
        cache: &mut RuleCache,
        shapes: &mut Shapes,
    ) -> Result<[RuleId; 2]> {
        let name = program.str(program.signatures()[id].name);
        let user = if self.rules.is_empty() { None } else { self.rules.get(name) };
        if let Some(user) = user {
            if !shapes.read(program, id) {
                return Ok([RuleId::NONE; 2]);
            }
            let mut view = SignatureView::of(program, id, shapes);
            view.conservative = self.is_conservative;
            let rule = self.ask(user, &view)?;
            let rule = rule.map_or(RuleId::NONE, |rule| program.intern_rule(rule));
            return Ok([rule; 2]);
        }
        // A program with more signatures than the cache has room for would only fill it.
        let key = program.signatures().key(id);
        let is_kept = program.signatures().len() <= MAX_ENTRIES && is_portable(key);
        if let Some(pair) = if is_kept { cache.get(key) } else { None } {
            return Ok(intern(program.rules_mut(), pair));
        }
        let pair = match self.family(name) {
            Some(family) => self.make(family, program, id, shapes),
            None => [None, None],
        };
        let ids = intern(program.rules_mut(), &pair);
        if is_kept {
            // Equal rules are kept once, so that comparing them is comparing pointers.
            let kept = ids.map(|id| id.get().map(|id| program.rules().shared(id).clone()));
            cache.insert(program.signatures().key(id), kept);
        }
        Ok(ids)
    }

    /// Asks `family` for the rules of a signature.
    fn make(
        &self,
        family: &Family,
        program: &Program,
        id: SignatureId,
        shapes: &mut Shapes,
    ) -> RulePair {
        if !shapes.read(program, id) {
            return [None, None];
        }
        let mut view = SignatureView::of(program, id, shapes);
        view.conservative = self.is_conservative;
        let usual = (family.build)(&view).map(SharedRule::from);
        if family.surroundings.is_none() {
            return [usual.clone(), usual];
        }
        view.surroundings = true;
        [usual, (family.build)(&view).map(SharedRule::from)]
    }

    /// The rule that the user gives a signature, checked; remembered if it comes from a function.
    fn ask(&self, user: &UserRule, view: &SignatureView<'_>) -> Result<Option<OpShardingRule>> {
        let rule = match user {
            UserRule::Notation(notation) => notation.instantiate(view).map(Some),
            UserRule::Function(function) => {
                let key = signature_key(view);
                let known = lock(&self.answers).get(&key).cloned();
                if let Some(rule) = known {
                    return Ok(rule);
                }
                // The lock is not held here: the function may use the engine itself.
                let rule = function(view).and_then(|rule| check(view, rule));
                if let Ok(rule) = &rule {
                    lock(&self.answers).insert(key, rule.clone());
                }
                rule
            }
        };
        rule.map_err(|error| at_op(view, error))
    }
}

impl RuleSource for Registry {
    fn prepare(&mut self, program: &mut Program, conservative: bool) -> Result<()> {
        self.is_conservative = conservative;
        if program.signature_rules().generation() != self.generation {
            program.signature_rules_mut().reset(self.generation);
        }
        self.sign_new_ops(program);
        if program.signature_rules().of(conservative).len() == program.signatures().len() {
            return Ok(());
        }
        let mut rules = std::mem::take(program.signature_rules_mut().of_mut(conservative));
        // Taken out of the lock: a user's function may run programs itself.
        let place = usize::from(conservative);
        let mut cache = std::mem::take(&mut lock(&self.caches)[place]);
        let mut shapes = Shapes::default();
        let mut outcome = Ok(());
        let first_new = rules.len();
        for id in program.signatures().ids().skip(first_new) {
            match self.rules_of(program, id, &mut cache, &mut shapes) {
                Ok(pair) => rules.push(pair),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            };
        }
        *program.signature_rules_mut().of_mut(conservative) = rules;
        lock(&self.caches)[place].give_back(cache);
        outcome
    }

    fn follows_from_signature(&self, program: &Program, signature: SignatureId) -> bool {
        let rules = program.signature_rules().of(self.is_conservative).get(signature);
        rules.is_some_and(|[rule, other]| rule == other)
    }

    fn rule(&self, program: &Program, op: OpId) -> RuleId {
        if let Some(rule) = program.op_rules().get(op).get() {
            return rule;
        }
        let Some(id) = program.signature(op).get() else { return RuleId::NONE };
        let Some(&[rule, other]) = program.signature_rules().of(self.is_conservative).get(id)
        else {
            return RuleId::NONE;
        };
        if rule == other {
            return rule;
        }
        let surroundings = Family::of(program.op_name(op)).and_then(|family| family.surroundings);
        if surroundings.is_some_and(|holds| holds(program, op)) {
            other
        } else {
            rule
        }
    }
}

/// The rule of a function is checked as one in the text would be.
fn check(view: &SignatureView<'_>, rule: Option<OpShardingRule>) -> Result<Option<OpShardingRule>> {
    let Some(rule) = rule else { return Ok(None) };
    let mut problems = verify_rule(&rule);
    if problems.is_empty() {
        let shape = |shape: Option<&[i64]>| Ok(shape.unwrap_or(&[]).to_vec());
        let operands: Vec<_> = (0..view.num_operands()).map(|i| shape(view.operand(i))).collect();
        let results: Vec<_> = (0..view.num_results()).map(|i| shape(view.result(i))).collect();
        problems = verify_rule_shapes(&rule, &operands, &results);
    }
    Error::check(problems)?;
    Ok(Some(rule))
}

/// Places mistakes in a rule at the first op that has the signature.
fn at_op(view: &SignatureView<'_>, mut error: Error) -> Error {
    let Some((program, id)) = view.source() else { return error };
    let span = program.op_span(program.signatures()[id].example);
    for diagnostic in &mut error.diagnostics {
        diagnostic.message = format!("rule of {}: {}", view.name, diagnostic.message);
        diagnostic.span = span;
    }
    error
}

/// The key under which the answer of a user's function is remembered: everything that it is told, in bytes
/// that do not depend on the program.
fn signature_key(view: &SignatureView<'_>) -> Vec<u8> {
    let mut key = view.name.as_bytes().to_vec();
    key.push(u8::from(view.conservative));
    if let Some((program, id)) = view.source() {
        let signature = &program.signatures()[id];
        for &ty in signature.operand_types.iter().chain(&signature.result_types) {
            key.extend_from_slice(program.type_text(ty).as_bytes());
            key.push(0);
        }
        key.extend_from_slice(&(signature.operand_types.len() as u32).to_le_bytes());
    }
    for (name, value) in view.attributes() {
        key.extend_from_slice(format!("{name}={value:?}\0").as_bytes());
    }
    key
}
