//! Short lists without allocations.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// A list whose items are in place if there are at most `N`, and on the heap if there are more.
#[derive(Clone)]
pub struct InlineList<T, const N: usize>(Items<T, N>);

#[derive(Clone)]
enum Items<T, const N: usize> {
    /// The number of items, and the items followed by default values.
    Inline(u32, [T; N]),
    Heap(Vec<T>),
}

impl<T: Copy + Default, const N: usize> InlineList<T, N> {
    /// An empty list.
    #[inline]
    pub fn new() -> Self {
        Self(Items::Inline(0, [T::default(); N]))
    }
    /// The items of `items`.
    #[inline]
    pub fn of(items: &[T]) -> Self {
        let mut inline = [T::default(); N];
        match inline.get_mut(..items.len()) {
            Some(place) => {
                place.copy_from_slice(items);
                Self(Items::Inline(items.len() as u32, inline))
            }
            None => Self(Items::Heap(items.to_vec())),
        }
    }
    /// `count` times `item`.
    #[inline]
    pub fn repeat(item: T, count: usize) -> Self {
        if count <= N {
            return Self(Items::Inline(count as u32, [item; N]));
        }
        Self(Items::Heap(vec![item; count]))
    }
    /// Adds `item` at the end.
    #[inline]
    pub fn push(&mut self, item: T) {
        if let Items::Inline(len, inline) = &mut self.0 {
            if let Some(place) = inline.get_mut(*len as usize) {
                *place = item;
                *len += 1;
                return;
            }
        }
        self.push_to_heap(item);
    }
    /// Adds `item` at the end of a list whose inline array is full, or which is on the heap.
    #[cold]
    #[inline(never)]
    fn push_to_heap(&mut self, item: T) {
        match &mut self.0 {
            Items::Inline(_, inline) => {
                let mut items = inline.to_vec();
                items.push(item);
                self.0 = Items::Heap(items);
            }
            Items::Heap(items) => items.push(item),
        }
    }
}

impl<T: Copy + Default, const N: usize> Default for InlineList<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Deref for InlineList<T, N> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Items::Inline(len, inline) => inline.get(..*len as usize).unwrap_or_default(),
            Items::Heap(items) => items,
        }
    }
}

impl<T, const N: usize> DerefMut for InlineList<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Items::Inline(len, inline) => inline.get_mut(..*len as usize).unwrap_or_default(),
            Items::Heap(items) => items,
        }
    }
}

impl<T: Copy + Default, const N: usize> FromIterator<T> for InlineList<T, N> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = Self::new();
        for item in items {
            list.push(item);
        }
        list
    }
}

impl<T: Copy + Default, const N: usize> Extend<T> for InlineList<T, N> {
    #[inline]
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.push(item);
        }
    }
}

impl<'l, T, const N: usize> IntoIterator for &'l InlineList<T, N> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;
    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Copy + Default, const N: usize> From<Vec<T>> for InlineList<T, N> {
    fn from(items: Vec<T>) -> Self {
        Self::of(&items)
    }
}

impl<T: PartialEq, const N: usize> PartialEq for InlineList<T, N> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq, const N: usize> Eq for InlineList<T, N> {}

impl<T: fmt::Debug, const N: usize> fmt::Debug for InlineList<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_however_many_there_are() {
        for count in 0..9 {
            let expected: Vec<usize> = (0..count).collect();
            let mut list: InlineList<usize, 3> = (0..count).collect();
            assert_eq!(*list, *expected);
            assert_eq!(list, InlineList::of(&expected));
            assert_eq!(*InlineList::<usize, 3>::repeat(7, count), *vec![7; count]);
            list.push(count);
            list[0] = 5;
            assert_eq!((list.len(), list[0]), (count + 1, 5));
        }
    }
}
