//! The agenda of a replay: the times of the recorded run at which a visit may now have another
//! outcome.

use super::times::Time;

/// A set of times. Only times after the last one taken are added.
#[derive(Clone, Default)]
pub struct Agenda {
    /// A bit for each time.
    words: Vec<u64>,
    /// A word before which no bit is set.
    first: usize,
}

impl Agenda {
    /// An empty agenda of `num_times` times.
    pub fn new(num_times: usize) -> Self {
        Self { words: vec![0; num_times.div_ceil(64)], first: 0 }
    }
    /// Clears the agenda.
    pub fn clear(&mut self) {
        self.words[self.first..].fill(0);
        self.first = 0;
    }
    /// Adds `time`.
    #[inline]
    pub fn add(&mut self, time: Time) {
        debug_assert!(time.number() / 64 >= self.first);
        self.words[time.number() / 64] |= 1 << (time.number() % 64);
    }
    /// Takes the first time.
    #[inline]
    pub fn take(&mut self) -> Option<Time> {
        let word =
            self.words[self.first..].iter_mut().zip(self.first..).find(|(word, _)| **word != 0);
        let Some((word, index)) = word else {
            self.first = self.words.len();
            return None;
        };
        self.first = index;
        let bit = word.trailing_zeros() as usize;
        *word &= *word - 1;
        Some(Time::of_number(index * 64 + bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_taken_in_order_each_once() {
        let mut agenda = Agenda::new(300);
        for number in [299, 5, 64, 5, 63] {
            agenda.add(Time::of_number(number));
        }
        assert_eq!(agenda.take().map(Time::number), Some(5));
        agenda.add(Time::of_number(6));
        let rest = std::iter::from_fn(|| agenda.take()).map(Time::number);
        assert_eq!(rest.collect::<Vec<_>>(), [6, 63, 64, 299]);
        agenda.clear();
        agenda.add(Time::of_number(1));
        agenda.add(Time::of_number(200));
        assert_eq!(agenda.take().map(Time::number), Some(1));
        agenda.clear();
        assert_eq!(agenda.take(), None);
    }
}
