//! The time axis of a timeline. Long times in which nothing ran are folded, so that the attempts before and after them keep
//! a size that people can see.

/// A time without any attempt is folded if it is longer than this, and than a part of the time with attempts.
const FOLDED_MIN_MS: i64 = 5 * 60_000;
const FOLDED_MIN_PART: f64 = 0.35;
/// The width of a folded time, as a part of the axis.
const FOLD_WIDTH: f64 = 0.03;
/// All folded times together are at most this part of the axis.
const FOLDS_WIDTH_MAX: f64 = 0.3;
const TICKS_MAX: i64 = 6;
/// The distances between ticks, in seconds.
const STEPS_S: [i64; 20] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400,
    172_800, 604_800,
];

/// Maps instants to places from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// The parts, one after the other.
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Part {
    from_ms: i64,
    until_ms: i64,
    from: f64,
    until: f64,
    is_folded: bool,
}

/// A mark at the axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) at_ms: i64,
}

/// A folded time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fold {
    pub(super) from: f64,
    pub(super) until: f64,
    pub(super) duration_ms: i64,
}

impl Axis {
    /// An axis from `from_ms` to `until_ms`, of which these times have attempts.
    pub(super) fn new(from_ms: i64, until_ms: i64, mut busy: Vec<(i64, i64)>) -> Axis {
        let until_ms = until_ms.max(from_ms + 1);
        busy.retain(|(from, until)| from < until && *until > from_ms && *from < until_ms);
        busy.sort_unstable();
        let mut idle = Vec::new();
        let mut at = from_ms;
        for (from, until) in busy {
            if from > at {
                idle.push((at, from));
            }
            at = at.max(until);
        }
        if at < until_ms {
            idle.push((at, until_ms));
        }
        let idle_ms: i64 = idle.iter().map(|(from, until)| until - from).sum();
        let busy_ms = (until_ms - from_ms - idle_ms).max(1);
        let least = FOLDED_MIN_MS.max((busy_ms as f64 * FOLDED_MIN_PART) as i64);
        idle.retain(|(from, until)| until - from > least);
        Axis::of_folds(from_ms, until_ms, &idle, (busy_ms / 10).clamp(200, 2_000))
    }

    /// `margin_ms` of a folded time stay in sight on both sides.
    fn of_folds(from_ms: i64, until_ms: i64, folds: &[(i64, i64)], margin_ms: i64) -> Axis {
        let margin = |(from, until): (i64, i64)| {
            let margin = (until - from) / 50;
            let before = if from == from_ms { 0 } else { margin.min(margin_ms) };
            (from + before, until - if until == until_ms { 0 } else { margin.min(margin_ms) })
        };
        let folds: Vec<(i64, i64)> = folds.iter().copied().map(margin).collect();
        let folded_ms: i64 = folds.iter().map(|(from, until)| until - from).sum();
        let shown_ms = (until_ms - from_ms - folded_ms).max(1) as f64;
        let fold_width = match folds.len() {
            0 => 0.0,
            count => FOLD_WIDTH.min(FOLDS_WIDTH_MAX / count as f64),
        };
        let scale = (1.0 - fold_width * folds.len() as f64) / shown_ms;
        let mut parts = Vec::new();
        let (mut at_ms, mut at) = (from_ms, 0.0);
        let mut push = |until_ms: i64, width: f64, is_folded: bool, at_ms: &mut i64| {
            if until_ms > *at_ms {
                parts.push(Part { from_ms: *at_ms, until_ms, from: at, until: at + width, is_folded });
                at += width;
                *at_ms = until_ms;
            }
        };
        for (from, until) in folds {
            push(from, (from - at_ms) as f64 * scale, false, &mut at_ms);
            push(until, fold_width, true, &mut at_ms);
        }
        push(until_ms, (until_ms - at_ms) as f64 * scale, false, &mut at_ms);
        Axis { parts }
    }

    /// The place of an instant, from 0 to 1.
    pub(super) fn place(&self, at_ms: i64) -> f64 {
        let part = self.parts.iter().find(|part| at_ms <= part.until_ms).or(self.parts.last());
        part.map_or(0.0, |part| {
            let share = (at_ms - part.from_ms) as f64 / (part.until_ms - part.from_ms) as f64;
            (part.from + share * (part.until - part.from)).clamp(0.0, 1.0)
        })
    }

    /// The folded times.
    pub(super) fn folds(&self) -> Vec<Fold> {
        let folded = self.parts.iter().filter(|part| part.is_folded);
        folded
            .map(|part| Fold {
                from: part.from,
                until: part.until,
                duration_ms: part.until_ms - part.from_ms,
            })
            .collect()
    }

    /// Marks at equal distances from the beginning, outside of folded times.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let (Some(first), Some(last)) = (self.parts.first(), self.parts.last()) else { return Vec::new() };
        let shown_ms: i64 =
            self.parts.iter().filter(|part| !part.is_folded).map(|part| part.until_ms - part.from_ms).sum();
        let step_ms = 1_000
            * STEPS_S
                .into_iter()
                .find(|step| shown_ms / (step * 1_000) < TICKS_MAX)
                .unwrap_or_else(|| shown_ms / 1_000 / TICKS_MAX + 1);
        let mut ticks = vec![Tick { at: 0.0, at_ms: first.from_ms }];
        for part in self.parts.iter().filter(|part| !part.is_folded) {
            let before = (part.from_ms - first.from_ms).div_euclid(step_ms);
            let in_part = (1..=TICKS_MAX + 1).map(|number| first.from_ms + (before + number) * step_ms);
            for at_ms in in_part.filter(|at_ms| *at_ms < part.until_ms && *at_ms > part.from_ms) {
                let at = self.place(at_ms);
                // The texts of two ticks must not overlap, and the last one must not leave the picture.
                if ticks.last().is_none_or(|tick| at - tick.at > 0.09) && at < 0.96 && at_ms < last.until_ms {
                    ticks.push(Tick { at, at_ms });
                }
            }
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    #[test]
    fn a_time_with_attempts_is_straight() {
        let axis = Axis::new(0, 4 * MINUTE, vec![(0, MINUTE), (MINUTE, 4 * MINUTE)]);
        assert_eq!([0, MINUTE, 4 * MINUTE].map(|at| axis.place(at)), [0.0, 0.25, 1.0]);
        assert_eq!(axis.folds(), []);
        let ticks: Vec<i64> = axis.ticks().iter().map(|tick| tick.at_ms / MINUTE).collect();
        assert_eq!(ticks, [0, 1, 2, 3]);
    }

    #[test]
    fn idle_hours_are_folded() {
        let night = 10 * 60 * MINUTE;
        let axis = Axis::new(0, night + 2 * MINUTE, vec![(0, MINUTE), (night, night + 2 * MINUTE)]);
        let folds = axis.folds();
        assert_eq!(folds.len(), 1);
        assert!(folds[0].duration_ms > night - 2 * MINUTE && folds[0].until - folds[0].from < 0.031);
        assert!(axis.place(MINUTE) > 0.25, "{}", axis.place(MINUTE));
        assert!(axis.place(night) > axis.place(MINUTE) && axis.place(night + 2 * MINUTE) > 0.999);
        assert!(axis.ticks().iter().all(|tick| tick.at_ms < 2 * MINUTE || tick.at_ms > night - MINUTE));
    }

    #[test]
    fn many_idle_hours_leave_room_for_attempts() {
        let hour = 60 * MINUTE;
        let busy: Vec<(i64, i64)> = (0..50).map(|at| (at * hour, at * hour + 1_000)).collect();
        let axis = Axis::new(0, 50 * hour, busy);
        let folded: f64 = axis.folds().iter().map(|fold| fold.until - fold.from).sum();
        assert!(folded < FOLDS_WIDTH_MAX + 0.01, "{folded}");
        let places: Vec<f64> = (0..500).map(|at| axis.place(at * 6 * MINUTE)).collect();
        assert!(places.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn a_run_without_length_has_an_axis() {
        let axis = Axis::new(5, 5, vec![]);
        assert!((0.0..=1.0).contains(&axis.place(5)) && (0.0..=1.0).contains(&axis.place(500)));
        assert_eq!(axis.ticks().len(), 1);
    }
}
