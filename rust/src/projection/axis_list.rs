//! A list of axes that is stored inline if it is short.

use crate::axis::AxisRef;
use crate::index::AxisId;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

/// The most axes that are stored inline; a dim is rarely sharded over more.
const FEW: usize = 2;
const UNUSED: AxisRef = AxisRef::full(AxisId::NONE);

/// A list of axes. Factor tables, of which there are thousands, have one for each factor of each tensor.
#[derive(Clone)]
pub struct AxisList(Axes);

#[derive(Clone)]
enum Axes {
    Few(usize, [AxisRef; FEW]),
    Many(Vec<AxisRef>),
}

impl AxisList {
    /// The empty list.
    pub const fn new() -> Self {
        Self(Axes::Few(0, [UNUSED; FEW]))
    }
    /// The axes.
    #[inline]
    pub fn as_slice(&self) -> &[AxisRef] {
        match &self.0 {
            Axes::Few(len, axes) => axes.get(..*len).unwrap_or(axes),
            Axes::Many(axes) => axes,
        }
    }
    /// Appends `axis`.
    #[inline]
    pub fn push(&mut self, axis: AxisRef) {
        match &mut self.0 {
            Axes::Few(len, axes) => match axes.get_mut(*len) {
                Some(place) => {
                    *place = axis;
                    *len += 1;
                }
                None => self.0 = Axes::Many([&axes[..], &[axis]].concat()),
            },
            Axes::Many(axes) => axes.push(axis),
        }
    }
    /// Keeps the first `len` axes.
    #[inline]
    pub fn truncate(&mut self, new_len: usize) {
        match &mut self.0 {
            Axes::Few(len, _) => *len = new_len.min(*len),
            Axes::Many(axes) => axes.truncate(new_len),
        }
    }
    /// Takes all axes out.
    #[inline]
    pub fn clear(&mut self) {
        self.truncate(0);
    }
    /// Appends `axes`.
    #[inline]
    pub fn extend_from_slice(&mut self, axes: &[AxisRef]) {
        self.extend(axes.iter().copied());
    }
}

impl Default for AxisList {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for AxisList {
    type Target = [AxisRef];
    #[inline]
    fn deref(&self) -> &[AxisRef] {
        self.as_slice()
    }
}

impl DerefMut for AxisList {
    #[inline]
    fn deref_mut(&mut self) -> &mut [AxisRef] {
        match &mut self.0 {
            Axes::Few(len, axes) => &mut axes[..*len],
            Axes::Many(axes) => axes,
        }
    }
}

impl Extend<AxisRef> for AxisList {
    #[inline]
    fn extend<I: IntoIterator<Item = AxisRef>>(&mut self, axes: I) {
        for axis in axes {
            self.push(axis);
        }
    }
}

impl From<&[AxisRef]> for AxisList {
    #[inline]
    fn from(axes: &[AxisRef]) -> Self {
        let mut list = Self::new();
        list.extend_from_slice(axes);
        list
    }
}

impl PartialEq for AxisList {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for AxisList {}

impl Hash for AxisList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for AxisList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Id;

    #[test]
    fn it_is_a_list_however_long() {
        let axes: Vec<AxisRef> = (0..5).map(|i| AxisRef::full(AxisId::from_index(i))).collect();
        for len in 0..=axes.len() {
            let list = AxisList::from(&axes[..len]);
            assert_eq!(&*list, &axes[..len]);
            for kept in 0..=len {
                let mut shorter = list.clone();
                shorter.truncate(kept);
                assert_eq!(shorter, AxisList::from(&axes[..kept]));
                shorter.extend(axes[kept..].iter().copied());
                assert_eq!(&*shorter, &axes[..]);
            }
        }
    }
}
