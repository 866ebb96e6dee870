//! Ids of the tables of the memo.

/// The id of a class of specs with equal visits, valid for all programs that the process propagates: see
/// [`super::process_cache::SpecClass`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpecClassId(u32);

impl SpecClassId {
    /// Not known yet.
    pub const UNKNOWN: Self = Self(u32::MAX);
    /// The class with this index.
    pub const fn from_index(index: usize) -> Self {
        Self(index as u32)
    }
    /// Its index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The id of an entry of [`super::Memo`]: a class of specs, and the shardings of the tensors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoId(u32);

impl MemoId {
    /// No entry.
    pub const NONE: Self = Self(u32::MAX);
    /// The entry with this index.
    pub const fn from_index(index: usize) -> Self {
        Self(index as u32)
    }
    /// Its index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
