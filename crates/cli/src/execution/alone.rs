//! Finds the jobs of a run that no other job can run beside: every other job is before or after them.

use std::collections::{HashMap, HashSet};

/// The jobs that every other job is before or after. An edge goes from a job to one that needs it.
pub(super) fn alone(jobs: &[i64], edges: &[(i64, i64)]) -> HashSet<i64> {
    let backwards: Vec<(i64, i64)> = edges.iter().map(|(from, to)| (*to, *from)).collect();
    let (after, before) = (counts_after(jobs, edges), counts_after(jobs, &backwards));
    let is_alone = |job: &i64| match (after.get(job), before.get(job)) {
        (Some(after), Some(before)) => after + before + 1 == jobs.len(),
        (None, _) | (_, None) => false,
    };
    jobs.iter().copied().filter(is_alone).collect()
}

/// How many jobs are after a job, for each job that is at some time the only one that is ready. All jobs that are left
/// then need it, because one that does not would be ready too.
fn counts_after(jobs: &[i64], edges: &[(i64, i64)]) -> HashMap<i64, usize> {
    let mut blocked_by: HashMap<i64, usize> = jobs.iter().map(|job| (*job, 0)).collect();
    let mut next: HashMap<i64, Vec<i64>> = HashMap::new();
    for (from, to) in edges {
        if blocked_by.contains_key(from)
            && let Some(count) = blocked_by.get_mut(to)
        {
            *count += 1;
            next.entry(*from).or_default().push(*to);
        }
    }
    let mut ready: Vec<i64> = jobs.iter().copied().filter(|job| blocked_by[job] == 0).collect();
    let mut left = jobs.len();
    let mut found = HashMap::new();
    while let Some(job) = ready.pop() {
        left -= 1;
        if ready.is_empty() {
            found.insert(job, left);
        }
        for after in next.remove(&job).unwrap_or_default() {
            if let Some(count) = blocked_by.get_mut(&after) {
                *count -= 1;
                if *count == 0 {
                    ready.push(after);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_alone_if_every_other_job_is_before_or_after_it() {
        type Case = (i64, &'static [(i64, i64)], &'static [i64]);
        let cases: [Case; 7] = [
            (1, &[], &[1]),
            (2, &[], &[]),
            (3, &[(1, 2), (2, 3)], &[1, 2, 3]),
            (3, &[(1, 2), (2, 3), (1, 3)], &[1, 2, 3]),
            // A diamond.
            (4, &[(1, 2), (1, 3), (2, 4), (3, 4)], &[1, 4]),
            // 3 begins beside 1 and 2.
            (3, &[(1, 2)], &[]),
            // 4 needs only 3, and 2 runs beside both.
            (4, &[(1, 2), (1, 3), (3, 4)], &[1]),
        ];
        for (count, edges, expected) in cases {
            let jobs: Vec<i64> = (1..=count).collect();
            let expected: HashSet<i64> = expected.iter().copied().collect();
            assert_eq!(alone(&jobs, edges), expected, "{edges:?}");
        }
    }
}
