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
    /// From pairs of a row and what is in it, which keep their order.
    pub fn of(count: usize, pairs: &[(u32, T)]) -> Self {
        let mut starts = vec![0; count + 1];
        for &(row, _) in pairs {
            starts[row as usize + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut all: Vec<T> = pairs.iter().map(|pair| pair.1).collect();
        for &(row, one) in pairs {
            all[next[row as usize] as usize] = one;
            next[row as usize] += 1;
        }
        Self { all, starts }
    }
    /// What is in row `at`.
    pub fn row(&self, at: u32) -> &[T] {
        &self.all[self.starts[at as usize] as usize..self.starts[at as usize + 1] as usize]
    }
}
