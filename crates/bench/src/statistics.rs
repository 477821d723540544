//! The median of some rounds and its spread: pure.

use schemars::JsonSchema;
use serde::Serialize;

/// The median, the lowest and the highest value of some rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// Always a measured value: for an even number of rounds the lower of the two in the middle.
    pub median: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
}

impl Spread {
    /// The spread of the values that are numbers; `None` if there is none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Spread { median: sorted[(sorted.len() - 1) / 2], min, max })
    }
}

/// The ratio of two values in each round. A round in which the reference is 0 is left out.
#[must_use]
pub(crate) fn ratios(values: &[f64], references: &[f64]) -> Vec<f64> {
    values.iter().zip(references).filter(|(_, by)| **by > 0.0).map(|(value, by)| value / by).collect()
}

/// The value that at least `percent` of all values do not exceed (nearest rank); `None` without values.
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
    fn a_ratio_compares_values_of_the_same_round() {
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
