//! The times at which the limit on memory can bind.
//!
//! Times between which nothing starts or ends form one *slot*. A slot is dropped if another one is
//! at least as tight for every choice, or if even the largest usages are within the limit.

/// Memory that depends on a choice: when it is live, and its smallest and largest size.
pub(super) struct Span {
    pub start: u32,
    pub end: u32,
    pub least: i64,
    pub most: i64,
}

/// The remaining slots.
pub(super) struct Timeline {
    /// A time in each slot, ascending.
    times: Vec<u32>,
    /// The capacity of each slot that is left if every span has its smallest size.
    pub capacities: Vec<i64>,
    /// The peak if every span has its smallest size: no lower limit can be met.
    pub least_peak: i128,
}

struct Slot {
    time: u32,
    least: i128,
    most: i128,
    /// Whether memory that depends on a choice starts, or ends, with this slot.
    starts: bool,
    ends: bool,
}

impl Timeline {
    pub fn new(spans: &[Span], limit: Option<i64>) -> Self {
        let slots = slots(spans);
        let least_peak = slots.iter().map(|slot| slot.least).max().unwrap_or(0);
        let mut kept: Vec<Slot> = Vec::new();
        let Some(limit) = limit else {
            return Self { times: Vec::new(), capacities: Vec::new(), least_peak };
        };
        for mut slot in slots {
            while let Some(last) = kept.last_mut() {
                // One of the two slots has all memory that is live in the other.
                if !slot.starts && slot.least <= last.least {
                    last.ends |= slot.ends;
                    slot.time = u32::MAX;
                    break;
                }
                if last.ends || last.least > slot.least {
                    break;
                }
                slot.starts |= last.starts;
                kept.pop();
            }
            if slot.time < u32::MAX {
                kept.push(slot);
            }
        }
        kept.retain(|slot| slot.most > i128::from(limit));
        let capacity = |slot: &Slot| {
            (i128::from(limit) - slot.least)
                .clamp(i128::from(i64::MIN / 2), i128::from(i64::MAX / 2))
        };
        Self {
            times: kept.iter().map(|slot| slot.time).collect(),
            capacities: kept.iter().map(|slot| capacity(slot) as i64).collect(),
            least_peak,
        }
    }

    /// The slots in which memory from `start` up to `end` is live.
    pub fn range(&self, start: u32, end: u32) -> [u32; 2] {
        [start, end.max(start)].map(|time| self.times.partition_point(|&slot| slot < time) as u32)
    }
}

fn slots(spans: &[Span]) -> Vec<Slot> {
    // Time, whether it is a start, index.
    let mut events: Vec<(u32, bool, u32)> = Vec::with_capacity(2 * spans.len());
    for (index, span) in spans.iter().enumerate() {
        if span.start < span.end {
            events.extend([(span.start, true, index as u32), (span.end, false, index as u32)]);
        }
    }
    events.sort_unstable();
    let mut slots: Vec<Slot> = Vec::new();
    let (mut least, mut most) = (0, 0);
    for group in events.chunk_by(|a, b| a.0 == b.0) {
        let (mut starts, mut ends) = (false, false);
        for &(_, start, index) in group {
            let span = &spans[index as usize];
            let sign = if start { 1 } else { -1 };
            least += sign * i128::from(span.least);
            most += sign * i128::from(span.most);
            if span.most > span.least {
                *(if start { &mut starts } else { &mut ends }) = true;
            }
        }
        if let Some(last) = slots.last_mut() {
            last.ends = ends;
        }
        slots.push(Slot { time: group[0].0, least, most, starts, ends: false });
    }
    slots
}
