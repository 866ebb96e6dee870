//! A cache across programs of op signatures that were verified: an op with one of them is not
//! verified again.
//!
//! See [`crate::memoization`] for how verifications share the cache, also across threads and forks.

use crate::index::{Id, SignatureId};
use crate::ir::{is_portable, SignatureCache, SignatureTable};
use crate::memoization::{CacheSlot, Taken};
use crate::shardy::Version;

/// For each signature, whether an op with it was found valid.
type Cache = SignatureCache<bool>;

/// One cache for each version, since definitions of ops may differ.
static KEPT: [CacheSlot<Cache>; Version::COUNT] = [const { CacheSlot::new() }; Version::COUNT];

/// The signatures of earlier programs, and those that were found valid since.
pub struct Verified {
    shardy: Version,
    cache: Taken<Cache>,
    /// Valid signatures of this program that the cache does not have.
    found: Vec<SignatureId>,
}

impl Verified {
    /// Takes the cache of the process for programs of this version.
    pub fn take(shardy: Version) -> Self {
        Self { shardy, cache: KEPT[shardy as usize].take(Cache::default), found: Vec::new() }
    }
    /// Whether an op with the signature `id` was found valid in an earlier program.
    #[inline]
    pub fn has(&mut self, signatures: &SignatureTable, id: SignatureId) -> bool {
        !self.cache.is_empty() && self.cache.get(signatures.key(id)) == Some(&true)
    }
    /// Records that an op with the signature `id` is valid.
    #[inline]
    pub fn note(&mut self, id: SignatureId) {
        self.found.push(id);
    }
    /// Puts the cache back with the new signatures, if the program has no aliases: only then keys
    /// mean the same in every program.
    pub fn leave(self, signatures: &SignatureTable, has_aliases: bool) {
        let Self { shardy, mut cache, mut found } = self;
        found.retain(|&id| !has_aliases || is_portable(signatures.key(id)));
        let mut are_right = vec![false; if cache.is_empty() { signatures.len() } else { 0 }];
        for id in &found {
            if let Some(is_right) = are_right.get_mut(id.index()) {
                *is_right = true;
            }
        }
        if !cache.adopt(signatures, are_right) {
            for id in found {
                let key = signatures.key(id);
                match cache.get_mut(key) {
                    Some(is_right) => *is_right = true,
                    None => cache.insert(key, true),
                }
            }
        }
        cache.rewind();
        KEPT[shardy as usize].leave(cache, SignatureCache::len);
    }
}

/// Empties the cache. Verifications in progress keep theirs until they end.
pub fn clear() {
    KEPT.iter().for_each(CacheSlot::clear);
}

/// Number of signatures in the cache, except those that verifications have taken.
pub fn len() -> usize {
    KEPT.iter().map(|kept| kept.size(SignatureCache::len)).sum()
}
