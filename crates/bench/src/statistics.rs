//! The median of some rounds and its spread: pure.

use serde::Serialize;

/// What the rounds of a measurement gave: the middle one, and the lowest and the highest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Of an even number of rounds the lower of the two in the middle: always a value that was measured.
    pub median: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
}

impl Spread {
    /// Of at least one value that is a number; else there is none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Spread { median: sorted[(sorted.len() - 1) / 2], min, max })
    }
}

/// One value by the other, round by round. A round in which the other is 0 tells nothing and is left out.
#[must_use]
pub(crate) fn ratios(values: &[f64], references: &[f64]) -> Vec<f64> {
    values.iter().zip(references).filter(|(_, by)| **by > 0.0).map(|(value, by)| value / by).collect()
}

/// The value that at least `percent` of all values do not exceed (nearest rank), of at least one value.
#[must_use]
pub(crate) fn percentile(values: &[f64], percent: usize) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_a_value_that_was_measured() {
        let cases: [(&[f64], Option<[f64; 3]>); 6] = [
            (&[], None),
            (&[f64::NAN], None),
            (&[3.0], Some([3.0, 3.0, 3.0])),
            (&[3.0, 1.0], Some([1.0, 1.0, 3.0])),
            (&[5.0, 1.0, 3.0], Some([3.0, 1.0, 5.0])),
            (&[4.0, 1.0, f64::INFINITY, 9.0, 2.0], Some([2.0, 1.0, 9.0])),
        ];
        for (values, expected) in cases {
            let expected = expected.map(|[median, min, max]| Spread { median, min, max });
            assert_eq!(Spread::of(values), expected, "{values:?}");
        }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        assert_eq!(ratios(&[1.0, 9.0, 5.0], &[2.0, 3.0, 0.0]), [0.5, 3.0]);
        assert_eq!(ratios(&[1.0], &[]), [0.0; 0]);
    }

    #[test]
    fn percentiles_are_the_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let cases: [(&[f64], usize, Option<f64>); 7] = [
            (&[], 50, None),
            (&[7.0], 99, Some(7.0)),
            (&[1.0, 2.0], 50, Some(1.0)),
            (&[1.0, 2.0, 3.0], 50, Some(2.0)),
            (&hundred, 50, Some(50.0)),
            (&hundred, 99, Some(99.0)),
            (&hundred, 100, Some(100.0)),
        ];
        for (values, percent, expected) in cases {
            assert_eq!(percentile(values, percent), expected, "{percent} of {values:?}");
        }
    }
}
