//! A table of derived values by their inputs, which are written as words.

use rustc_hash::FxHashMap;

/// Derived values by keys, lists of words. A look-up takes an empty [`Memo::key`], fills it, and asks [`Memo::find`]; where that
/// has no value, [`Memo::add`] takes the key back. It allocates nothing.
///
/// Lists of different lengths in one key are each preceded by their length, unless other words of the key tell it.
#[derive(Clone, Debug)]
pub struct Memo<V> {
    values: FxHashMap<Box<[u32]>, V>,
    /// The most values.
    most: usize,
    /// The last key; a field to reuse its memory.
    key: Vec<u32>,
}

impl<V> Default for Memo<V> {
    fn default() -> Self {
        Self::bounded(usize::MAX)
    }
}

impl<V> Memo<V> {
    /// An empty table for at most `most` values; further ones are not kept.
    pub fn bounded(most: usize) -> Self {
        Self { values: FxHashMap::default(), most, key: Vec::new() }
    }
    /// An empty key.
    #[inline]
    pub fn key(&mut self) -> Vec<u32> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key
    }
    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
    /// Drops all values.
    pub fn clear(&mut self) {
        self.values.clear();
    }
}

impl<V: Clone> Memo<V> {
    /// The value for `key`.
    ///
    /// # Errors
    /// There is none; the key is returned, for [`Memo::add`].
    #[inline]
    pub fn find(&mut self, key: Vec<u32>) -> Result<V, Vec<u32>> {
        match self.values.get(key.as_slice()) {
            Some(value) => {
                let value = value.clone();
                self.key = key;
                Ok(value)
            }
            None => Err(key),
        }
    }
    /// Keeps `value`, which follows from `key`, and returns it.
    pub fn add(&mut self, key: Vec<u32>, value: V) -> V {
        if self.values.len() < self.most {
            self.values.insert(key.as_slice().into(), value.clone());
        }
        self.key = key;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_for_each_key() {
        let mut memo = Memo::default();
        let mut made = 0;
        for words in [[1, 2], [2, 1], [1, 2], [2, 1]] {
            let mut key = memo.key();
            assert!(key.is_empty());
            key.extend(words);
            let value = memo.find(key).unwrap_or_else(|key| {
                made += 1;
                memo.add(key, words[0])
            });
            assert_eq!(value, words[0]);
        }
        assert_eq!((made, memo.len()), (2, 2));
    }

    #[test]
    fn a_full_table_keeps_what_it_has() {
        let mut memo = Memo::bounded(1);
        assert_eq!(memo.add(vec![1], 'a'), 'a');
        assert_eq!(memo.add(vec![2], 'b'), 'b');
        assert_eq!(memo.find(vec![1]), Ok('a'));
        assert_eq!(memo.find(vec![2]), Err(vec![2]));
        memo.clear();
        assert_eq!(memo.find(vec![1]), Err(vec![1]));
    }
}
