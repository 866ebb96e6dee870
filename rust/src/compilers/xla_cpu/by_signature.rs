//! Memoizes facts about ops by the signature of the op.

use crate::index::{IdVec, SignatureId};
use crate::ir::Program;

/// The place of what nobody has asked for.
const NONE: u32 = u32::MAX;

/// For each signature that was asked for what is known of its ops.
pub struct BySignature<T> {
    /// Places in `known`.
    places: IdVec<SignatureId, u32>,
    known: Vec<T>,
}

impl<T> BySignature<T> {
    /// For the signatures of `program`.
    pub fn new(program: &Program) -> Self {
        Self { places: IdVec::filled(NONE, program.signatures().len()), known: Vec::new() }
    }
    /// The facts about ops of signature `id`, which `find` computes at the first request.
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
