//! Which of the jobs, or of the runs, that share a concurrency key get a slot, wait, are skipped or are cancelled. Pure.

/// One that holds a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Holder {
    pub(in crate::store) id: i64,
    pub(in crate::store) is_stopping: bool,
}

/// One that waits for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Waiting {
    pub(in crate::store) id: i64,
    pub(in crate::store) limit: i64,
    pub(in crate::store) on_full: OnFull,
}

/// What happens to one for which there is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum OnFull {
    Wait,
    Skip,
    CancelOldest,
}

/// What happens to those that share a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::store) struct SlotDecision {
    pub(in crate::store) admit: Vec<i64>,
    pub(in crate::store) skip: Vec<i64>,
    pub(in crate::store) cancel: Vec<i64>,
}

impl OnFull {
    /// By its spelling in the tables.
    pub(in crate::store) fn parse(text: &str) -> Option<OnFull> {
        match text {
            "wait" => Some(OnFull::Wait),
            "skip" => Some(OnFull::Skip),
            "cancel_oldest" => Some(OnFull::CancelOldest),
            _ => None,
        }
    }
}

impl SlotDecision {
    pub(in crate::store) fn is_empty(&self) -> bool {
        self.admit.is_empty() && self.skip.is_empty() && self.cancel.is_empty()
    }
}

/// Decides about those that share a key. The waiting ones are in the order in which they get slots.
pub(in crate::store) fn decide(holders: &[Holder], waiting: &[Waiting]) -> SlotDecision {
    let cancel = too_old(holders, waiting);
    let staying: Vec<&Waiting> = waiting.iter().filter(|job| !cancel.contains(&job.id)).collect();
    // The first one without a free slot stops those behind it, because none overtakes another.
    let taken = holders.len() as i64;
    let fits = |(index, job): &(usize, &&Waiting)| taken + (*index as i64) < job.limit;
    let admitted = staying.iter().enumerate().take_while(fits).count();
    let (admit, left) = staying.split_at(admitted);
    SlotDecision {
        admit: ids_of(admit, |_any| true),
        skip: ids_of(left, |on_full| on_full == OnFull::Skip),
        cancel,
    }
}

/// Those to cancel for waiting ones with `on_full = cancel_oldest`. Of these and the holders only the newest stay, up
/// to the limit. Holders that are stopping already make room and are not counted.
fn too_old(holders: &[Holder], waiting: &[Waiting]) -> Vec<i64> {
    let waiting: Vec<&Waiting> = waiting.iter().collect();
    let replacing = ids_of(&waiting, |on_full| on_full == OnFull::CancelOldest);
    let Some(newest) = waiting.iter().rev().find(|job| job.on_full == OnFull::CancelOldest) else {
        return Vec::new();
    };
    let mut alive: Vec<i64> =
        holders.iter().filter(|holder| !holder.is_stopping).map(|holder| holder.id).collect();
    alive.extend(replacing);
    // Age goes by id. A waiting one may be older than a holder, because it was blocked, delayed or retried before.
    alive.sort_unstable();
    let may = usize::try_from(newest.limit).unwrap_or(usize::MAX).max(1);
    alive.truncate(alive.len().saturating_sub(may));
    alive
}

fn ids_of(waiting: &[&Waiting], is_wanted: fn(OnFull) -> bool) -> Vec<i64> {
    waiting.iter().filter(|job| is_wanted(job.on_full)).map(|job| job.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holders(ids: &[i64], stopping: &[i64]) -> Vec<Holder> {
        ids.iter().map(|id| Holder { id: *id, is_stopping: stopping.contains(id) }).collect()
    }

    fn waiting_jobs(ids: &[i64], limit: i64, on_full: OnFull) -> Vec<Waiting> {
        ids.iter().map(|id| Waiting { id: *id, limit, on_full }).collect()
    }

    fn decision(admit: &[i64], skip: &[i64], cancel: &[i64]) -> SlotDecision {
        SlotDecision { admit: admit.to_vec(), skip: skip.to_vec(), cancel: cancel.to_vec() }
    }

    #[test]
    fn free_slots_are_given_in_order_and_what_is_left_waits_or_goes() {
        use OnFull::{CancelOldest, Skip, Wait};
        let cases = [
            (holders(&[], &[]), waiting_jobs(&[4, 5, 6], 2, Wait), decision(&[4, 5], &[], &[])),
            (holders(&[1], &[]), waiting_jobs(&[4, 5], 2, Wait), decision(&[4], &[], &[])),
            (holders(&[1, 2], &[]), waiting_jobs(&[4], 2, Wait), decision(&[], &[], &[])),
            (holders(&[1, 2, 3], &[]), waiting_jobs(&[4], 2, Wait), decision(&[], &[], &[])),
            (holders(&[1], &[]), waiting_jobs(&[4, 5], 1, Skip), decision(&[], &[4, 5], &[])),
            (holders(&[], &[]), waiting_jobs(&[4, 5], 1, Skip), decision(&[4], &[5], &[])),
            (holders(&[1], &[]), waiting_jobs(&[4], 1, CancelOldest), decision(&[], &[], &[1])),
            (holders(&[1], &[1]), waiting_jobs(&[4], 1, CancelOldest), decision(&[], &[], &[])),
            (holders(&[1], &[1]), waiting_jobs(&[4, 5], 1, CancelOldest), decision(&[], &[], &[4])),
            (holders(&[1, 2], &[]), waiting_jobs(&[4], 2, CancelOldest), decision(&[], &[], &[1])),
            (holders(&[], &[]), waiting_jobs(&[4, 5, 6], 1, CancelOldest), decision(&[6], &[], &[4, 5])),
            (holders(&[5], &[]), waiting_jobs(&[4], 1, CancelOldest), decision(&[], &[], &[4])),
            (holders(&[2, 5], &[]), waiting_jobs(&[4], 2, CancelOldest), decision(&[], &[], &[2])),
        ];
        for (holders, waiting, expected) in cases {
            assert_eq!(decide(&holders, &waiting), expected, "{holders:?} {waiting:?}");
        }
    }

    #[test]
    fn nobody_is_overtaken_by_a_job_with_a_higher_limit() {
        let mut waiting = waiting_jobs(&[4], 1, OnFull::Wait);
        waiting.extend(waiting_jobs(&[5], 9, OnFull::Wait));
        assert_eq!(decide(&holders(&[1], &[]), &waiting), SlotDecision::default());
    }
}
