//! Short lists without allocations.

/// A list whose items are on the stack if there are at most `N`, and on the heap if there are more.
pub struct InlineList<T, const N: usize> {
    inline: [T; N],
    len: usize,
    heap: Vec<T>,
}

impl<T: Copy, const N: usize> InlineList<T, N> {
    /// The items of `items`; `filler` is any value.
    #[inline]
    pub fn new(items: impl Iterator<Item = T>, filler: T) -> Self {
        let mut list = Self { inline: [filler; N], len: 0, heap: Vec::new() };
        for item in items {
            list.push(item);
        }
        list
    }
    #[inline]
    fn push(&mut self, item: T) {
        if let Some(place) = self.inline.get_mut(self.len) {
            *place = item;
        } else {
            if self.heap.is_empty() {
                self.heap.extend_from_slice(&self.inline);
            }
            self.heap.push(item);
        }
        self.len += 1;
    }
    /// The items.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        self.inline.get(..self.len).unwrap_or(&self.heap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_however_many_there_are() {
        for count in 0..9 {
            let list = InlineList::<usize, 3>::new(0..count, 0);
            assert_eq!(list.as_slice(), (0..count).collect::<Vec<_>>());
        }
    }
}
