//! Reads the picture of the last 24 hours. It is the same for all readers, and nearly all runs that end now were accepted in its
//! newest parts. So the others are counted again at most once a minute: on a day with 30,000 runs that is a third of the page's
//! time.

use std::sync::{Mutex, PoisonError};

use windlass_engine::store::HistogramPart;
use windlass_engine::{Result, Store};

/// The length of the picture and the number of its parts: half hours of the clock, so that the page stays the same while nothing
/// changes.
const PICTURE_MS: i64 = 24 * 3_600_000;
const PARTS: usize = 48;
const PART_MS: i64 = PICTURE_MS / PARTS as i64;
/// The parts that are counted for each page.
const NEW_PARTS: usize = 2;
/// How long the counts of the other parts are shown.
const FRESH_MS: i64 = 60_000;

/// The parts that were counted last, but the newest.
#[derive(Debug, Default)]
pub(crate) struct Picture {
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    /// The end of the last part.
    until_ms: i64,
    counted_at_ms: i64,
    parts: Vec<HistogramPart>,
}

impl Picture {
    /// The runs that were accepted in each part of the last 24 hours. Whoever asks while another one counts waits for that.
    ///
    /// # Errors
    /// Returns the database's error.
    pub(crate) fn read(&self, store: &Store, now_ms: i64) -> Result<Vec<HistogramPart>> {
        let until_ms = (now_ms.div_euclid(PART_MS) + 1) * PART_MS;
        let new_from_ms = until_ms - NEW_PARTS as i64 * PART_MS;
        let mut parts = self.until(store, new_from_ms, until_ms - PICTURE_MS)?;
        parts.extend(store.runs().histogram(new_from_ms, until_ms, NEW_PARTS)?);
        Ok(parts)
    }

    fn until(&self, store: &Store, until_ms: i64, from_ms: i64) -> Result<Vec<HistogramPart>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let counted_at_ms = store.clock().monotonic_ms();
        let is_fresh =
            |kept: &&Kept| kept.until_ms == until_ms && counted_at_ms - kept.counted_at_ms < FRESH_MS;
        if let Some(kept) = kept.as_ref().filter(is_fresh) {
            return Ok(kept.parts.clone());
        }
        let parts = store.runs().histogram(from_ms, until_ms, PARTS - NEW_PARTS)?;
        *kept = Some(Kept { until_ms, counted_at_ms, parts: parts.clone() });
        Ok(parts)
    }
}
