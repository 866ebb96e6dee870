//! Typed ids and vectors indexed by them.
//!
//! Every table of the engine is a dense array; an id is a `u32` position in one of them. The newtypes
//! make it a type error to use an axis of a mesh, a dim of a tensor or a factor of a rule for another.
//! `NONE` marks absence without the four bytes an `Option` would add.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut, Range};

/// A typed `u32` index.
pub trait Id: Copy + Eq {
    /// The id of position `index`.
    fn from_index(index: usize) -> Self;
    /// The position of this id.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The absent id.
            pub const NONE: Self = Self(u32::MAX);
            /// Whether this is the absent id.
            #[inline]
            pub const fn is_none(self) -> bool {
                self.0 == u32::MAX
            }
            /// Whether this is not the absent id.
            #[inline]
            pub const fn is_some(self) -> bool {
                self.0 != u32::MAX
            }
            /// The id of position `index`, for constants.
            #[inline]
            pub const fn new(index: u32) -> Self {
                Self(index)
            }
            /// `Some(self)` unless absent.
            #[inline]
            pub const fn get(self) -> Option<Self> {
                if self.is_none() { None } else { Some(self) }
            }
        }

        impl Id for $name {
            #[inline]
            fn from_index(index: usize) -> Self {
                debug_assert!(index < u32::MAX as usize);
                Self(index as u32)
            }
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::NONE
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                if self.is_none() {
                    write!(f, "{}(none)", stringify!($name))
                } else {
                    write!(f, "{}({})", stringify!($name), self.0)
                }
            }
        }
    )*};
}

ids! {
    /// An axis of a mesh, by its place in the mesh.
    AxisId,
    /// A factor of an op sharding rule.
    FactorId,
    /// A mesh of the program, inlined or named.
    MeshId,
    /// A hash-consed tensor sharding.
    ShardingId,
    /// A hash-consed op sharding rule.
    RuleId,
    /// An op signature: what a rule may depend on.
    SignatureId,
    /// An interned string.
    StrId,
    /// A type.
    TypeId,
    /// An op.
    OpId,
    /// An op result or a block argument.
    ValueId,
    /// An operand slot of an op; also a node of its value's use list.
    UseId,
    /// A block.
    BlockId,
    /// A region.
    RegionId,
    /// A function.
    FuncId,
    /// An op's structured attributes beyond the dictionary.
    PayloadId,
}

/// Consecutive ids. Unlike a mapped range, `nth` takes constant time.
#[derive(Clone, Debug)]
pub struct IdRange<I> {
    range: Range<usize>,
    ids: PhantomData<fn(I) -> I>,
}

impl<I: Id> IdRange<I> {
    /// The ids of the positions in `range`.
    #[inline]
    pub fn new(range: Range<usize>) -> Self {
        Self { range, ids: PhantomData }
    }
}

impl<I: Id> Iterator for IdRange<I> {
    type Item = I;
    #[inline]
    fn next(&mut self) -> Option<I> {
        self.range.next().map(I::from_index)
    }
    #[inline]
    fn nth(&mut self, n: usize) -> Option<I> {
        self.range.nth(n).map(I::from_index)
    }
    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl<I: Id> DoubleEndedIterator for IdRange<I> {
    #[inline]
    fn next_back(&mut self) -> Option<I> {
        self.range.next_back().map(I::from_index)
    }
}

impl<I: Id> ExactSizeIterator for IdRange<I> {}

/// A vector indexed by one kind of id.
#[derive(PartialEq, Eq)]
pub struct IdVec<I, T> {
    items: Vec<T>,
    ids: PhantomData<fn(I) -> I>,
}

/// Clones have 75 % spare capacity: tables are copied to be edited, and a full table would be
/// copied once more. Unused capacity takes no memory.
impl<I, T: Clone> Clone for IdVec<I, T> {
    fn clone(&self) -> Self {
        let mut items = Vec::with_capacity(self.items.len() + self.items.len() / 4 * 3);
        items.extend_from_slice(&self.items);
        Self { items, ids: PhantomData }
    }
}

impl<I: Id, T> IdVec<I, T> {
    /// An empty vector.
    pub const fn new() -> Self {
        Self { items: Vec::new(), ids: PhantomData }
    }
    /// An empty vector with room for `capacity` items.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { items: Vec::with_capacity(capacity), ids: PhantomData }
    }
    /// `len` copies of `item`.
    pub fn filled(item: T, len: usize) -> Self
    where
        T: Clone,
    {
        Self { items: vec![item; len], ids: PhantomData }
    }
    /// Makes room for `additional` more items, if there is memory.
    pub fn reserve(&mut self, additional: usize) {
        // If this fails, the table grows when items are pushed.
        let _ = self.items.try_reserve(additional);
    }
    /// Appends `item` and returns its id.
    #[inline]
    pub fn push(&mut self, item: T) -> I {
        let id = I::from_index(self.items.len());
        self.items.push(item);
        id
    }
    /// The id that the next `push` returns.
    #[inline]
    pub fn next_id(&self) -> I {
        I::from_index(self.items.len())
    }
    /// How many items there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// The item of `id`, if it is in range.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }
    /// All ids in order.
    pub fn ids(&self) -> IdRange<I> {
        IdRange::new(0..self.items.len())
    }
    /// All items in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }
    /// All items in order, mutable.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }
    /// The items as a slice.
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }
    /// The items as a mutable slice.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.items
    }
    /// Grows or shrinks to `len` items.
    pub fn resize(&mut self, len: usize, item: T)
    where
        T: Clone,
    {
        self.items.resize(len, item);
    }
    /// The items from `range`, by position.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> &[T] {
        &self.items[range]
    }
}

impl<I: Id, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T: std::fmt::Debug> std::fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.items.fmt(f)
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}
