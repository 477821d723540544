//! The runs of the last 24 hours as a picture.

use windlass_engine::store::{Count, HistogramPart};

use crate::pages::times::Times;

/// The height of the picture, and the width of a bar with the gap behind it.
const HEIGHT: f64 = 98.0;
const STEP: f64 = 7.6;
const BAR: f64 = 6.0;
/// A part with a failure has a mark at least this high.
const FAILED_MIN: f64 = 7.0;
/// The gap between the two parts of a bar.
const GAP: f64 = 1.0;

/// The card with the picture.
pub(super) struct HistogramCard {
    pub(super) bars: Vec<Bar>,
    pub(super) width: String,
    pub(super) successful: String,
    pub(super) failed: String,
    pub(super) label: String,
    /// The times below the picture.
    pub(super) axis: Vec<String>,
}

/// A rectangle.
pub(super) struct Bar {
    pub(super) class: &'static str,
    pub(super) x: String,
    pub(super) y: String,
    pub(super) height: String,
    pub(super) title: String,
}

impl HistogramCard {
    pub(super) fn new(parts: &[HistogramPart], times: &Times) -> HistogramCard {
        let most = parts.iter().map(|part| part.successful.number + part.failed.number).max().unwrap_or(0);
        let sum = |of: fn(&HistogramPart) -> Count| {
            let number = parts.iter().map(|part| of(part).number).sum();
            Count { number, is_exact: parts.iter().all(|part| of(part).is_exact) }
        };
        let (successful, failed) = (sum(|part| part.successful), sum(|part| part.failed));
        let axis =
            parts.iter().step_by((parts.len() / 4).max(1)).take(4).map(|part| times.minute(part.from_ms));
        HistogramCard {
            bars: parts
                .iter()
                .enumerate()
                .flat_map(|(at, part)| bars(at, part, most.max(1), times))
                .collect(),
            width: format!("{:.1}", (parts.len() as f64 * STEP - (STEP - BAR)).max(1.0)),
            label: format!(
                "Runs in the last 24 hours, in parts of half an hour: {successful} successful, {failed} failed"
            ),
            successful: successful.to_string(),
            failed: failed.to_string(),
            axis: axis.chain(["now".to_owned()]).collect(),
        }
    }
}

fn bars(at: usize, part: &HistogramPart, most: i64, times: &Times) -> Vec<Bar> {
    let scale = (HEIGHT - GAP) / most as f64;
    let failed = match part.failed.number {
        0 => 0.0,
        number => (number as f64 * scale).max(FAILED_MIN),
    };
    let room = HEIGHT - failed - if failed > 0.0 { GAP } else { 0.0 };
    let successful = (part.successful.number as f64 * scale).min(room);
    let title = format!(
        "from {}: {} successful, {} failed",
        times.minute(part.from_ms),
        part.successful,
        part.failed
    );
    let bar = |class, y: f64, height: f64| Bar {
        class,
        x: format!("{:.1}", at as f64 * STEP),
        y: format!("{y:.1}"),
        height: format!("{height:.1}"),
        title: title.clone(),
    };
    let mut bars = Vec::new();
    if successful > 0.0 {
        bars.push(bar("h-ok", room - successful, successful));
    }
    if failed > 0.0 {
        bars.push(bar("h-bad", HEIGHT - failed, failed));
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_among_thousands_is_seen() {
        let count = |number| Count { number, is_exact: number < 2_000 };
        let parts = [
            HistogramPart { from_ms: 0, successful: count(2_000), failed: count(1) },
            HistogramPart { from_ms: 1_800_000, successful: count(0), failed: count(0) },
        ];
        let card = HistogramCard::new(&parts, &Times { zone: chrono_tz::Tz::UTC, now_ms: 3_600_000 });
        let heights: Vec<(&str, &str)> =
            card.bars.iter().map(|bar| (bar.class, bar.height.as_str())).collect();
        assert_eq!(heights, [("h-ok", "90.0"), ("h-bad", "7.0")]);
        assert_eq!((card.successful.as_str(), card.failed.as_str()), ("2000+", "1"));
    }
}
