//! A list of lists in one allocation (rows of different lengths, as in the CSR format).

/// Lists of elements, concatenated row by row.
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
    /// The number of elements in all rows.
    pub fn total(&self) -> usize {
        self.all.len()
    }
    /// From pairs of a row and an element; elements of a row keep their order.
    pub fn of(count: usize, pairs: &[(u32, T)]) -> Self {
        let mut starts = vec![0_u32; count + 1];
        let mut all = Vec::with_capacity(pairs.len());
        let (mut last, mut is_sorted) = (0, true);
        for &(row, one) in pairs {
            starts[row as usize + 1] += 1;
            is_sorted &= last <= row;
            last = row;
            all.push(one);
        }
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        if !is_sorted {
            let mut next = starts.clone();
            for &(row, one) in pairs {
                let place = &mut next[row as usize];
                all[*place as usize] = one;
                *place += 1;
            }
        }
        Self { all, starts }
    }
    /// The elements of all rows, one row after the other.
    pub fn into_all(self) -> Vec<T> {
        self.all
    }
    /// The elements of row `at`.
    #[inline]
    pub fn row(&self, at: u32) -> &[T] {
        &self.all[self.starts[at as usize] as usize..self.starts[at as usize + 1] as usize]
    }
}
