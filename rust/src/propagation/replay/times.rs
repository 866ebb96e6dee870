//! The times of a recorded run, in order, and what is visited at each.
//!
//! Each greedy run visits the results of the main function and the returned values, then the ops by
//! position, then the results once more. Times are numbered in that order, without gaps.

/// A time: 0 is before the first run; then there is one for each place of each greedy run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Time(u32);

impl Time {
    /// Before the first run.
    pub const START: Self = Self(0);

    /// The number of times before it.
    #[inline]
    pub fn number(self) -> usize {
        self.0 as usize
    }
    /// The time with this number.
    #[inline]
    pub fn of_number(number: usize) -> Self {
        Self(number as u32)
    }
}

/// What is visited at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The result of the main function at this index, before the queue or after it.
    Result(u32),
    /// The op at this position in the queue.
    Op(u32),
}

/// A time with its greedy run and its place in that run.
#[derive(Clone, Copy)]
pub struct Moment {
    /// The time.
    pub time: Time,
    /// The index of the greedy run.
    pub run: u32,
    /// The number of places of the run up to this one; 0 before the first run.
    passed: u32,
}

impl Moment {
    /// Before the first run.
    pub const START: Self = Self { time: Time::START, run: 0, passed: 0 };
}

/// The times of the runs of a program.
#[derive(Clone, Copy)]
pub struct Times {
    num_results: u32,
    num_ops: u32,
    num_runs: u32,
}

impl Times {
    /// The times of `num_runs` runs of a program with this many ops and results of the main
    /// function; `None` if there are too many.
    pub fn new(num_results: usize, num_ops: usize, num_runs: usize) -> Option<Self> {
        let places = num_results.checked_mul(2)?.checked_add(num_ops)?;
        let all = places.checked_mul(num_runs)?.checked_add(1)?;
        (all < u32::MAX as usize).then_some(Self {
            num_results: num_results as u32,
            num_ops: num_ops as u32,
            num_runs: num_runs as u32,
        })
    }
    /// The number of times.
    pub fn len(self) -> usize {
        (1 + self.num_runs * self.num_places()) as usize
    }
    /// The number of greedy runs.
    #[inline]
    pub fn num_runs(self) -> u32 {
        self.num_runs
    }
    /// The number of ops.
    #[inline]
    pub fn num_ops(self) -> u32 {
        self.num_ops
    }
    /// The number of results of the main function.
    #[inline]
    pub fn num_results(self) -> u32 {
        self.num_results
    }
    /// The number of places of a run.
    #[inline]
    fn num_places(self) -> u32 {
        self.num_ops + 2 * self.num_results
    }
    #[inline]
    fn at(self, run: u32, place: u32) -> Time {
        Time(1 + run * self.num_places() + place)
    }
    /// The time at which the op at `position` is taken from the queue in `run`.
    #[inline]
    pub fn of_op(self, run: u32, position: u32) -> Time {
        self.at(run, self.num_results + position)
    }
    /// The times at which the result at `index` is visited in `run`: before the ops and after them.
    pub fn of_result(self, run: u32, index: u32) -> [Time; 2] {
        [index, self.num_results + self.num_ops + index].map(|place| self.at(run, place))
    }
    /// `time`, which is not the start, and what is visited then.
    #[inline]
    pub fn moment(self, time: Time) -> (Moment, Place) {
        let number = time.0 - 1;
        let (run, place) = (number / self.num_places(), number % self.num_places());
        let at = match place.checked_sub(self.num_results) {
            None => Place::Result(place),
            Some(position) if position < self.num_ops => Place::Op(position),
            Some(after) => Place::Result(after - self.num_ops),
        };
        (Moment { time, run, passed: place + 1 }, at)
    }
    /// The first run in which the op at `position` is taken from the queue after `now`.
    #[inline]
    pub fn next_run_of_op(self, now: Moment, position: u32) -> u32 {
        now.run + u32::from(self.num_results + position < now.passed)
    }
    /// The number of positions that were taken from the queue in `run` at `time`.
    pub fn num_passed(self, run: u32, time: Time) -> u32 {
        let first = self.of_op(run, 0);
        (time.0 + 1).saturating_sub(first.0).min(self.num_ops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_order_of_what_happens() {
        let times = Times::new(2, 3, 2).unwrap();
        let mut expected = Vec::new();
        for run in 0..2 {
            expected
                .extend([0, 1].map(|index| (times.of_result(run, index)[0], Place::Result(index))));
            expected.extend([0, 1, 2].map(|at| (times.of_op(run, at), Place::Op(at))));
            expected
                .extend([0, 1].map(|index| (times.of_result(run, index)[1], Place::Result(index))));
        }
        assert_eq!(times.len(), 1 + expected.len());
        for ((time, place), number) in expected.into_iter().zip(1..) {
            assert_eq!(time.number(), number);
            let (moment, at) = times.moment(time);
            assert_eq!((moment.time, moment.run as usize, at), (time, (number - 1) / 7, place));
            for position in 0..3 {
                let next = times.next_run_of_op(moment, position);
                let is_next = |run: u32| times.of_op(run, position) > time;
                assert!(is_next(next) && (next == 0 || !is_next(next - 1)));
            }
            let passed = (0..3).filter(|&at| times.of_op(moment.run, at) <= time).count();
            assert_eq!(times.num_passed(moment.run, time) as usize, passed);
        }
        assert_eq!(times.next_run_of_op(Moment::START, 0), 0);
        assert_eq!(times.num_passed(0, Time::START), 0);
    }

    #[test]
    fn times_that_do_not_fit_are_refused() {
        assert!(Times::new(1, 1 << 31, 2).is_none());
        assert!(Times::new(usize::MAX, 1, 1).is_none());
    }
}
