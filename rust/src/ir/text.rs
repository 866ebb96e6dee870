//! The text that spans point into.

use super::Span;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

/// A shared text, which is parsed without a copy.
pub type Source = Arc<dyn AsRef<str> + Send + Sync>;

/// The source, followed by the text that passes have added; offsets are into both as one text.
#[derive(Clone)]
pub struct TextPool {
    source: Source,
    added: String,
    /// The spans of long added texts by hash, so that they are not added twice.
    long: FxHashMap<u64, Span>,
}

/// Texts of at least this many bytes are looked up before they are added: replica groups are long,
/// and equal for many collectives.
const LONG: usize = 64;

impl Default for TextPool {
    fn default() -> Self {
        Self::new(Arc::new(""))
    }
}

impl std::fmt::Debug for TextPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TextPool").field(&self.source()).field(&self.added).finish()
    }
}

impl TextPool {
    /// A pool over `source`, which must be shorter than 2 GiB.
    pub fn new(source: Source) -> Self {
        debug_assert!((*source).as_ref().len() < i32::MAX as usize);
        Self { source, added: String::new(), long: FxHashMap::default() }
    }
    /// The source as it was given.
    #[inline]
    pub fn shared_source(&self) -> Source {
        self.source.clone()
    }
    /// The source.
    pub fn source(&self) -> &str {
        (*self.source).as_ref()
    }
    /// The text at `span`, which must not straddle the end of the source.
    #[inline]
    pub fn get(&self, span: Span) -> &str {
        let (start, end) = (span.start as usize, span.end as usize);
        let source = self.source();
        let base = source.len();
        if end <= base {
            &source[start..end]
        } else {
            &self.added[start - base..end - base]
        }
    }
    /// The text from `start` to the end of the source, or of the additions.
    pub fn tail(&self, start: u32) -> &str {
        let (start, source) = (start as usize, self.source());
        let base = source.len();
        if start < base {
            &source[start..]
        } else {
            &self.added[start - base..]
        }
    }
    /// Adds `text` and returns its span.
    pub fn add(&mut self, text: &str) -> Span {
        let start = (self.source().len() + self.added.len()) as u32;
        self.added.push_str(text);
        Span::new(start, start + text.len() as u32)
    }
    /// The span of `text`, which is added unless it was before.
    pub fn add_once(&mut self, text: &str) -> Span {
        if text.len() < LONG {
            return self.add(text);
        }
        let key = FxBuildHasher.hash_one(text);
        if let Some(&span) = self.long.get(&key) {
            if self.get(span) == text {
                return span;
            }
        }
        let span = self.add(text);
        self.long.insert(key, span);
        span
    }
}
