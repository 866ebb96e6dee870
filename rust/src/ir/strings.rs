//! Interned strings.

use crate::index::{Id, StrId};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Gives equal strings equal ids.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    strings: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, StrId>,
}

impl Interner {
    /// The id of `text`, new if it was never seen.
    pub fn intern(&mut self, text: &str) -> StrId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = StrId::from_index(self.strings.len());
        let text: Arc<str> = text.into();
        self.strings.push(text.clone());
        self.ids.insert(text, id);
        id
    }
    /// The id of `text` if it was seen before.
    pub fn find(&self, text: &str) -> Option<StrId> {
        self.ids.get(text).copied()
    }
    /// The string of `id`.
    pub fn get(&self, id: StrId) -> &str {
        &self.strings[id.index()]
    }
}
