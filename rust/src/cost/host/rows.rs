//! Lists of equal things, by row, in one piece of memory.

/// Lists of equal things by row, one after the other.
#[derive(Debug)]
pub struct Rows<T> {
    all: Vec<T>,
    starts: Vec<u32>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { all: Vec::new(), starts: vec![0] }
    }
}

impl<T: Copy> Rows<T> {
    /// Without rows; [`Rows::push`] fills the next one until [`Rows::end_row`].
    pub fn with_capacity(count: usize, all: usize) -> Self {
        let mut starts = Vec::with_capacity(count + 1);
        starts.push(0);
        Self { all: Vec::with_capacity(all), starts }
    }
    /// Adds to the row that is being filled.
    #[inline]
    pub fn push(&mut self, one: T) {
        self.all.push(one);
    }
    /// Ends the row that is being filled.
    #[inline]
    pub fn end_row(&mut self) {
        self.starts.push(self.all.len() as u32);
    }
    /// How many things are in all rows.
    pub fn total(&self) -> usize {
        self.all.len()
    }
    /// From pairs of a row and what is in it, which keep their order.
    pub fn of(count: usize, pairs: impl Iterator<Item = (u32, T)> + Clone) -> Self {
        let mut starts = vec![0; count + 1];
        for (row, _) in pairs.clone() {
            starts[row as usize + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut all: Vec<T> = pairs.clone().map(|pair| pair.1).collect();
        for (row, one) in pairs {
            all[next[row as usize] as usize] = one;
            next[row as usize] += 1;
        }
        Self { all, starts }
    }
    /// What is in row `at`.
    #[inline]
    pub fn row(&self, at: u32) -> &[T] {
        &self.all[self.starts[at as usize] as usize..self.starts[at as usize + 1] as usize]
    }
}
