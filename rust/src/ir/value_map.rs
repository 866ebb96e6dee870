//! Maps the values of an op to those of its clone.

use crate::index::{Id, ValueId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The largest capacity of the hash map that is kept on `clear`: clearing a larger one takes longer
/// than a new allocation.
const FEW: usize = 16;

/// A map from values to values. Values whose ids are close together, as those of one function, are
/// looked up in an array indexed by the distance from the first id; others in a hash map.
#[derive(Clone, Debug, Default)]
pub struct ValueMap {
    first: usize,
    near: Vec<ValueId>,
    num_near: usize,
    far: FxHashMap<ValueId, ValueId>,
}

impl ValueMap {
    /// What `value` maps to.
    #[inline]
    pub fn get(&self, value: ValueId) -> Option<ValueId> {
        let near = value.index().checked_sub(self.first).and_then(|at| self.near.get(at));
        match near.and_then(|value| value.get()) {
            Some(image) => Some(image),
            None if self.far.is_empty() => None,
            None => self.far.get(&value).copied(),
        }
    }
    /// Maps `value`, which maps to nothing yet, to `image`.
    pub fn insert(&mut self, value: ValueId, image: ValueId) {
        if self.near.is_empty() {
            self.first = value.index();
        }
        let at = value.index().wrapping_sub(self.first);
        if at >= self.near.len() && at > 4 * self.num_near + 16 {
            self.far.insert(value, image);
            return;
        }
        if self.near.len() <= at {
            self.near.resize(at + 1, ValueId::NONE);
        }
        self.near[at] = image;
        self.num_near += 1;
    }
    /// Clears the map, and prepares the array for the values with these ids.
    pub fn clear_for(&mut self, values: Range<usize>) {
        self.clear();
        self.first = values.start;
        self.near.resize(values.len(), ValueId::NONE);
    }
    /// Clears the map.
    pub fn clear(&mut self) {
        self.near.clear();
        self.num_near = 0;
        if self.far.capacity() <= FEW {
            self.far.clear();
        } else {
            self.far = FxHashMap::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_near_and_far_are_found() {
        let mut map = ValueMap::default();
        for round in 0..2 {
            let keys = [100, 101, 105, 3, 90_000, 90_001, 120, 7];
            for (image, &key) in keys.iter().enumerate() {
                assert_eq!(map.get(ValueId::from_index(key)), None);
                map.insert(ValueId::from_index(key), ValueId::from_index(image + round));
            }
            for (image, &key) in keys.iter().enumerate() {
                let found = map.get(ValueId::from_index(key));
                assert_eq!(found, Some(ValueId::from_index(image + round)));
            }
            assert_eq!(map.get(ValueId::from_index(102)), None);
            map.clear_for(90..130);
        }
    }
}
