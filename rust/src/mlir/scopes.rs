//! SSA names: which value a name stands for at some place.
//!
//! A name lives from its definition to the end of its region, and may not be defined again while it
//! lives. The scopes that have ended are told from those that have not by an id, so that leaving a
//! region costs nothing however many names it has.
//!
//! A name that is used before it is defined stands for a placeholder value; its definition moves the
//! uses over, as in MLIR: newest first, which leaves them in reverse order.

use crate::error::Span;
use crate::index::ValueId;
use rustc_hash::FxHashMap;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition {
    /// The first of its values; the others follow.
    pub first: ValueId,
    /// How many values it names.
    pub count: u32,
    /// Where it was defined.
    pub offset: u32,
    depth: u32,
    scope: u32,
}

/// A use of a name that has no definition yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward {
    /// Which of the name's values.
    pub number: u32,
    /// What stands for it until then.
    pub placeholder: ValueId,
    /// Where it was first used.
    pub span: Span,
    /// How many isolated regions were open there.
    pub isolation: u32,
}

/// What looking up a name gives.
pub(super) enum Lookup {
    /// Its definition.
    Defined(Definition),
    /// A definition that an isolated region hides.
    Hidden(Definition),
    /// None.
    Undefined,
}

/// The names that can be seen.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    names: FxHashMap<&'a str, Definition>,
    /// Ids of the scopes that are open.
    open: Vec<u32>,
    /// Depths at which isolated regions start.
    isolated: Vec<u32>,
    next: u32,
    forward: FxHashMap<&'a str, Vec<Forward>>,
    num_forward: usize,
}

impl<'a> Scopes<'a> {
    /// Makes room for `count` names.
    pub fn reserve(&mut self, count: usize) {
        self.names.reserve(count);
    }
    /// Enters a region.
    pub fn enter(&mut self, is_isolated: bool) {
        if is_isolated {
            self.isolated.push(self.open.len() as u32);
        }
        self.open.push(self.next);
        self.next += 1;
    }
    /// Leaves a region.
    pub fn leave(&mut self) {
        self.open.pop();
        if self.isolated.last() == Some(&(self.open.len() as u32)) {
            self.isolated.pop();
        }
    }
    /// How many isolated regions are open.
    pub fn isolation(&self) -> u32 {
        self.isolated.len() as u32
    }
    /// The id of the innermost region.
    pub fn current(&self) -> u32 {
        self.open.last().copied().unwrap_or(0)
    }
    /// What `name` stands for here.
    #[inline]
    pub fn look_up(&self, name: &str) -> Lookup {
        match self.names.get(name) {
            Some(&found) if self.open.get(found.depth as usize) == Some(&found.scope) => {
                if found.depth >= self.isolated.last().copied().unwrap_or(0) {
                    Lookup::Defined(found)
                } else {
                    Lookup::Hidden(found)
                }
            }
            _ => Lookup::Undefined,
        }
    }
    /// Makes `name` stand for `count` values from `first` on; the older definition if it has one.
    #[inline]
    pub fn define(
        &mut self,
        name: &'a str,
        first: ValueId,
        count: u32,
        offset: u32,
    ) -> Result<(), Definition> {
        let depth = self.open.len() as u32 - 1;
        let scope = self.open[depth as usize];
        let old = self.names.insert(name, Definition { first, count, offset, depth, scope });
        match old {
            Some(old) if self.open.get(old.depth as usize) == Some(&old.scope) => Err(old),
            _ => Ok(()),
        }
    }
    /// The placeholder of a use that came before the definition.
    pub fn find_forward(&self, name: &str, number: u32) -> Option<Forward> {
        self.forward.get(name)?.iter().find(|forward| forward.number == number).copied()
    }
    /// Notes such a use.
    pub fn add_forward(&mut self, name: &'a str, forward: Forward) {
        self.forward.entry(name).or_default().push(forward);
        self.num_forward += 1;
    }
    /// Whether any use waits for a definition.
    #[inline]
    pub fn has_forward(&self) -> bool {
        self.num_forward > 0
    }
    /// The uses that wait for the definition of `name`; they do not wait any more.
    pub fn take_forward(&mut self, name: &str) -> Vec<Forward> {
        let taken = self.forward.remove(name).unwrap_or_default();
        self.num_forward -= taken.len();
        taken
    }
    /// All uses that wait, in the order of the text.
    pub fn pending(&self) -> Vec<(&'a str, Forward)> {
        let mut all = Vec::with_capacity(self.num_forward);
        #[allow(clippy::iter_over_hash_type)] // sorted below
        for (&name, list) in &self.forward {
            all.extend(list.iter().map(|&forward| (name, forward)));
        }
        all.sort_by_key(|(_, forward)| forward.span.start);
        all
    }
    /// The names that can be seen, in the order of their definitions.
    pub fn visible(&self) -> Vec<&'a str> {
        let mut all: Vec<(u32, &'a str)> = self
            .names
            .iter()
            .filter(|(_, found)| self.open.get(found.depth as usize) == Some(&found.scope))
            .map(|(&name, found)| (found.offset, name))
            .collect();
        all.sort_unstable();
        all.into_iter().map(|(_, name)| name).collect()
    }
}
