//! Memoizes facts about ops by the signature of the op.

use crate::index::{IdVec, SignatureId};
use crate::ir::Program;

/// The index of a signature that was not looked up yet.
const NONE: u32 = u32::MAX;

/// The facts about the ops of each signature that was looked up.
pub struct BySignature<T> {
    /// Indices in `known`.
    places: IdVec<SignatureId, u32>,
    known: Vec<T>,
}

impl<T> BySignature<T> {
    /// For the signatures of `program`.
    pub fn new(program: &Program) -> Self {
        Self { places: IdVec::filled(NONE, program.signatures().len()), known: Vec::new() }
    }
    /// The facts about ops of signature `id`, computed by `find` at the first lookup.
    #[inline]
    pub fn of(&mut self, id: SignatureId, find: impl FnOnce() -> T) -> &mut T {
        let place = &mut self.places[id];
        if *place == NONE {
            *place = self.known.len() as u32;
            self.known.push(find());
        }
        &mut self.known[*place as usize]
    }
}
