//! The registry: computes the rule of every op of a program.
//!
//! Rules are computed once for each signature and stored in the program, so that successive passes
//! and clones of the program share them. Across programs, rules of families are cached in a
//! [`RuleCache`], and the results of users' functions in [`super::answers`].

use super::answers::Record;
use super::cache::{self, RuleCache, RulePair};
use super::chlo;
use super::stored_shardings::read_stored;
use super::table::Family;
use super::user_edges::{self, EdgeFunction, EdgeRecord, UserEdges};
use super::user_rule::{Recording, UserRule};
use super::view::{Shapes, SignatureView};
use crate::context::RuleSource;
use crate::error::Result;
use crate::index::{OpId, RuleId, SignatureId};
use crate::ir::{is_portable, Program, MAX_ENTRIES};
use crate::op_sharding_rule::{RuleTable, SharedRule};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

fn intern(rules: &mut RuleTable, pair: &RulePair) -> [RuleId; 2] {
    let mut id = |rule: &Option<SharedRule>| match rule {
        Some(rule) => rules.intern_shared(rule),
        None => RuleId::NONE,
    };
    [id(&pair[0]), id(&pair[1])]
}

/// The built-in rule families, and the rules and data-flow edges that users have registered. A
/// clone can be changed without affecting the original.
#[derive(Clone, Debug)]
pub struct Registry {
    rules: Arc<FxHashMap<String, UserRule>>,
    edges: Arc<FxHashMap<String, UserEdges>>,
    recording: Recording,
    edge_record: EdgeRecord,
    /// Registries that may have different rules have different generations.
    generation: u64,
    is_conservative: bool,
    legalizes_chlo: bool,
}

/// The generation of registries without users' rules.
const BUILTIN: u64 = 1;
/// The generation of registries with rules for CHLO, without users' rules.
const LEGALIZING_CHLO: u64 = 2;

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Registry {
    /// A registry with the rules of [`super::table`] only.
    pub fn builtin() -> Self {
        Self {
            rules: Arc::default(),
            edges: Arc::default(),
            recording: Recording::Off,
            edge_record: EdgeRecord::default(),
            generation: BUILTIN,
            is_conservative: false,
            legalizes_chlo: false,
        }
    }

    /// The registry with rules for CHLO ops as in XLA, which legalizes CHLO to ops with rules
    /// before propagation; Shardy itself has none.
    #[must_use]
    pub fn legalizing_chlo(mut self) -> Self {
        self.legalizes_chlo = true;
        self.changed();
        self
    }

    /// The registry for a run that may be repeated: it records the results of users' functions.
    #[must_use]
    pub fn recording(mut self) -> Self {
        self.recording = Recording::On(Record::default());
        self.edge_record = EdgeRecord::On(Arc::default());
        self
    }

    /// The registry for repeating the recorded run: it calls no user's function.
    #[must_use]
    pub fn replaying(&self) -> Self {
        let (recording, edge_record) = (self.recording.replayed(), self.edge_record.replayed());
        Self { recording, edge_record, ..self.clone() }
    }

    /// The family of the op called `name`.
    fn family(&self, name: &str) -> Option<&'static Family> {
        let chlo = || if self.legalizes_chlo { chlo::family_of(name) } else { None };
        Family::of(name).or_else(chlo)
    }

    /// Sets the user's rule of the op called `name`, which overrides its family; `None` removes the user's rule.
    pub fn set_rule(&mut self, name: &str, rule: Option<UserRule>) {
        let rules = Arc::make_mut(&mut self.rules);
        match rule {
            Some(rule) => rules.insert(name.to_owned(), rule),
            None => rules.remove(name),
        };
        self.changed();
    }

    /// Sets the data-flow edges of the op called `name`; `None` removes them.
    pub fn set_edges(&mut self, name: &str, edges: Option<UserEdges>) {
        let table = Arc::make_mut(&mut self.edges);
        match edges {
            Some(edges) => table.insert(name.to_owned(), edges),
            None => table.remove(name),
        };
    }

    /// Whether users have given data-flow edges to any op.
    pub fn has_edges(&self) -> bool {
        !self.edges.is_empty()
    }

    /// Adds the data-flow edges that users have given to ops to `program`, which may call their
    /// functions, and reads the shardings that ops store for them; must be called before any pass
    /// runs.
    pub fn install_edges(&self, program: &mut Program) -> Result<()> {
        let mut edges: Vec<(&String, &UserEdges)> = self.edges.iter().collect();
        edges.sort_unstable_by_key(|(name, _)| *name);
        let (mut always, mut functions) = (Vec::new(), Vec::new());
        for (name, edges) in edges {
            match edges {
                UserEdges::Always(spec) => always.push((&**name, spec.clone())),
                UserEdges::Function(function) => functions.push((&**name, function)),
            }
        }
        let functions: &[(&str, &Arc<EdgeFunction>)] = &functions;
        let by_signature = user_edges::by_signature(program, functions, &self.edge_record)?;
        program.set_edge_specs(always.into_iter(), by_signature.into_iter());
        read_stored(program)
    }

    /// The user's rule of the op called `name`.
    pub fn user_rule(&self, name: &str) -> Option<&UserRule> {
        self.rules.get(name)
    }

    /// The names of all ops with users' rules, sorted.
    pub fn user_rules(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.rules.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    fn changed(&mut self) {
        static NEXT: AtomicU64 = AtomicU64::new(LEGALIZING_CHLO + 1);
        self.generation = match (self.rules.is_empty(), self.legalizes_chlo) {
            (true, false) => BUILTIN,
            (true, true) => LEGALIZING_CHLO,
            (false, _) => NEXT.fetch_add(1, Ordering::Relaxed),
        };
    }

    /// Computes signatures of ops that passes have made and that may have a rule.
    fn sign_new_ops(&self, program: &mut Program) {
        for op in program.take_new_ops() {
            if !program.is_erased(op) {
                self.sign_new_op(program, op);
            }
        }
    }
    fn sign_new_op(&self, program: &mut Program, op: OpId) {
        if !program.lacks_signature(op) {
            return;
        }
        let name = program.op_name(op);
        if self.family(name).is_some() || self.rules.contains_key(name) {
            program.sign_op(op);
        }
    }

    /// The two rules of a signature: the first if the op does not meet its family's condition on
    /// surrounding ops, the second if it does.
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
            let rule = user.ask(&view, &self.recording)?;
            let rule = rule.map_or(RuleId::NONE, |rule| program.intern_rule(rule));
            return Ok([rule; 2]);
        }
        // If a program has more signatures than fit into the cache, it is not cached.
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
            // Equal rules are stored once, so that they can be compared by pointer.
            let kept = ids.map(|id| id.get().map(|id| program.rules().shared(id).clone()));
            cache.insert(program.signatures().key(id), kept);
        }
        Ok(ids)
    }

    /// Computes the rules of a signature with `family`.
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
}

impl RuleSource for Registry {
    fn sign(&self, program: &mut Program) {
        self.sign_new_ops(program);
    }
    fn sign_op(&self, program: &mut Program, op: OpId) {
        self.sign_new_op(program, op);
    }
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
        // The cache is taken, not borrowed: a user's function may run passes on programs.
        let (legalizes_chlo, shardy) = (self.legalizes_chlo, program.shardy());
        let table = cache::Table { conservative, legalizes_chlo, shardy };
        let mut cache = cache::take(table);
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
        cache::leave(table, cache);
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
