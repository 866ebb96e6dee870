//! Scopes of SSA names.
//!
//! A name is visible from its definition to the end of its region, and may not be defined again
//! while it is visible. Each scope has an id that tells whether it has ended, so that leaving a
//! region takes constant time, independent of the number of names in it.
//!
//! Names that are numbers, as most are in printed programs, index a vector; others are hashed.
//!
//! A name that is used before it is defined is bound to a placeholder value. Its definition moves
//! the uses to the defined value as MLIR does: newest first, which reverses their order.

use crate::error::Span;
use crate::index::ValueId;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// The definition of a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition {
    /// The first of its values; the others follow it, and all have the offset of the name.
    pub first: ValueId,
    scope: u32,
}

/// No definition.
const UNDEFINED: Definition = Definition { first: ValueId::NONE, scope: u32::MAX };
/// After this many names, the number of all names is estimated.
const MIN_EXPECTED: usize = 1 << 10;
/// The depth of a scope that has ended.
const ENDED: u32 = u32::MAX;

/// A use of a name that has no definition yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward {
    /// The number after `#`, 0 if there is none.
    pub number: u32,
    /// The placeholder value.
    pub placeholder: ValueId,
    /// The span of its first use.
    pub span: Span,
    /// The number of isolated regions that are open at its first use.
    pub isolation: u32,
}

/// The result of looking up a name.
pub(super) enum Lookup {
    /// Its definition.
    Defined(Definition),
    /// A definition that an isolated region hides.
    Hidden(Definition),
    /// No definition.
    Undefined,
}

/// A name that is not a number.
#[derive(PartialEq, Eq)]
struct Name<'a>(&'a str);

impl Hash for Name<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.0.as_bytes());
    }
}

/// Hashes names that differ only in their last character, which tend to be used together, to
/// neighbouring slots, since the table of a large program is far larger than the processor's
/// caches.
#[derive(Default)]
struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let Some((&last, stem)) = bytes.split_last() else { return };
        let mut hasher = FxHasher::default();
        hasher.write(stem);
        // The table takes the slot from the lowest bits, and compares the highest seven.
        let last = u64::from(last);
        self.0 = (hasher.finish() & !0xF ^ last & 0xF) ^ last << 57;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The visible names.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    names: HashMap<Name<'a>, Definition, BuildHasherDefault<NameHasher>>,
    /// The whole text.
    text: &'a str,
    /// Definitions of names that are numbers below `num_numbered`.
    numbered: Vec<Definition>,
    num_numbered: usize,
    /// Ids of the scopes that are open.
    open: Vec<u32>,
    /// The depth of each scope; `ENDED` if it has ended.
    depths: Vec<u32>,
    /// Depths at which isolated regions start.
    isolated: Vec<u32>,
    forward: FxHashMap<&'a str, Vec<Forward>>,
    num_forward: usize,
}

impl<'a> Scopes<'a> {
    /// No names, in this text, whose length bounds the vector of numeric names.
    pub fn new(text: &'a str) -> Self {
        Self { text, num_numbered: text.len() / 16 + 64, ..Self::default() }
    }
    /// Reserves memory for the names of the whole text, whose number is estimated from the names
    /// before `name`. Otherwise the table would rehash all names each time it grows, which is slow
    /// once they are not in the processor's caches.
    #[cold]
    fn make_room(&mut self, name: &str) {
        let (num_names, len) = (self.names.len(), self.text.len());
        let read = (name.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        if num_names >= MIN_EXPECTED && (1..len).contains(&read) {
            let expected = num_names as u64 * len as u64 / read as u64;
            self.names.reserve((expected as usize).saturating_sub(num_names) + num_names / 8);
        }
    }
    /// Reserves memory for this many names that are not numbers.
    pub fn reserve(&mut self, count: usize) {
        self.names.reserve(count);
    }
    /// Enters a region.
    pub fn enter(&mut self, is_isolated: bool) {
        let depth = self.open.len() as u32;
        if is_isolated {
            self.isolated.push(depth);
        }
        self.open.push(self.depths.len() as u32);
        self.depths.push(depth);
    }
    /// Leaves a region.
    pub fn leave(&mut self) {
        if let Some(scope) = self.open.pop() {
            self.depths[scope as usize] = ENDED;
        }
        if self.isolated.last() == Some(&(self.open.len() as u32)) {
            self.isolated.pop();
        }
    }
    /// The number of open isolated regions.
    pub fn isolation(&self) -> u32 {
        self.isolated.len() as u32
    }
    /// The id of the innermost region.
    pub fn current(&self) -> u32 {
        self.open.last().copied().unwrap_or(0)
    }
    /// The depth of the scope of `found`, `ENDED` if it has ended.
    #[inline]
    fn depth(&self, found: Definition) -> u32 {
        self.depths.get(found.scope as usize).copied().unwrap_or(ENDED)
    }
    /// The definition of `name` that is visible here.
    #[inline]
    pub fn look_up(&self, name: &str) -> Lookup {
        let found = match self.number(name) {
            Some(number) => self.numbered.get(number),
            None => self.names.get(&Name(name)),
        };
        let found = found.copied().unwrap_or(UNDEFINED);
        match self.depth(found) {
            ENDED => Lookup::Undefined,
            depth if depth >= self.isolated.last().copied().unwrap_or(0) => Lookup::Defined(found),
            _ => Lookup::Hidden(found),
        }
    }
    /// Binds `name` to `first` and the values after it; fails with the visible definition if there
    /// is one.
    #[inline]
    pub fn define(&mut self, name: &'a str, first: ValueId) -> Result<(), Definition> {
        let new = Definition { first, scope: self.current() };
        let old = if let Some(number) = self.number(name) {
            if number >= self.numbered.len() {
                self.numbered.resize(number + 1, UNDEFINED);
            }
            std::mem::replace(&mut self.numbered[number], new)
        } else {
            if self.names.len() == self.names.capacity() {
                self.make_room(name);
            }
            self.names.insert(Name(name), new).unwrap_or(UNDEFINED)
        };
        if self.depth(old) == ENDED {
            Ok(())
        } else {
            Err(old)
        }
    }
    /// The index of `name` in the vector, if it is a number below `num_numbered`.
    #[inline]
    fn number(&self, name: &str) -> Option<usize> {
        let bytes = name.as_bytes();
        if bytes.len() > 9 || bytes.is_empty() || (bytes[0] == b'0' && bytes.len() > 1) {
            return None;
        }
        let mut number = 0;
        for &byte in bytes {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number * 10 + usize::from(digit);
        }
        (number < self.num_numbered).then_some(number)
    }
    /// The placeholder of a use before the definition.
    pub fn find_forward(&self, name: &str, number: u32) -> Option<Forward> {
        self.forward.get(name)?.iter().find(|forward| forward.number == number).copied()
    }
    /// Records a use before the definition.
    pub fn add_forward(&mut self, name: &'a str, forward: Forward) {
        self.forward.entry(name).or_default().push(forward);
        self.num_forward += 1;
    }
    /// Whether any use is without a definition.
    #[inline]
    pub fn has_forward(&self) -> bool {
        self.num_forward > 0
    }
    /// Whether any use of `name` is without a definition.
    pub fn is_forward(&self, name: &str) -> bool {
        self.forward.contains_key(name)
    }
    /// Removes and returns the uses of `name` that are without a definition.
    pub fn take_forward(&mut self, name: &str) -> Vec<Forward> {
        let taken = self.forward.remove(name).unwrap_or_default();
        self.num_forward -= taken.len();
        taken
    }
    /// All uses that are without a definition, in the order of the text.
    pub fn pending(&self) -> Vec<(&'a str, Forward)> {
        let mut all = Vec::with_capacity(self.num_forward);
        #[allow(clippy::iter_over_hash_type)] // sorted below
        for (&name, list) in &self.forward {
            all.extend(list.iter().map(|&forward| (name, forward)));
        }
        all.sort_by_key(|(_, forward)| forward.span.start);
        all
    }
    /// The first values of the visible names.
    pub fn visible(&self) -> Vec<ValueId> {
        #[allow(clippy::iter_over_hash_type)] // sorted below
        let all = self.names.values().chain(&self.numbered);
        let seen = all.filter(|&&found| self.depth(found) != ENDED);
        let mut values: Vec<ValueId> = seen.map(|found| found.first).collect();
        values.sort_unstable();
        values
    }
}
