//! How large the tables are, as far as it matters for a plan.
//!
//! The server keeps a plan until a table's statistics are made anew. A plan for ten rows may read them all, and
//! would go on doing so when there are a million. So the server is asked from time to time how large the files of
//! the tables are, and plans are made anew when one has doubled. The answer waits for whoever has locked one of the
//! tables, so it is asked for only by what is about to use them: a lease is renewed while a migration takes long.

use super::client::Client;

/// Tables that grow with the work.
const TABLES: [&str; 4] = ["jobs", "runs", "job_dependencies", "schedules"];
/// Below that all sizes are one.
const BLOCKS_MIN: u64 = 8;
/// The server's usual size of a block. Another one shifts the steps, no more.
const BLOCK_BYTES: u64 = 8_192;

/// For each table how often its least size was doubled.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes([u32; TABLES.len()]);

impl Sizes {
    /// What the server is asked. The schema's name needs no quotes within.
    pub(super) fn question(schema: &str) -> String {
        let sizes = TABLES
            .map(|table| format!("coalesce(pg_relation_size(to_regclass('\"{schema}\".{table}')), 0)"))
            .join(", ");
        format!("SELECT concat_ws(' ', {sizes})")
    }

    /// Whether a statement uses one of the tables, as far as its text tells.
    pub(super) fn concern(sql: &str) -> bool {
        TABLES.iter().any(|table| sql.contains(table))
    }

    /// Asks the server.
    ///
    /// # Errors
    /// The server's.
    pub(super) fn ask(client: &mut Client, question: &str) -> Result<Sizes, postgres::Error> {
        let rows = client.query_typed(question, &[])?;
        rows.first().map_or(Ok(Sizes::default()), |row| row.try_get(0).map(Sizes::read))
    }

    /// The server's answer.
    fn read(answer: &str) -> Sizes {
        let mut sizes = Sizes::default();
        for (size, bytes) in sizes.0.iter_mut().zip(answer.split(' ')) {
            let blocks = bytes.parse().unwrap_or(0_u64) / BLOCK_BYTES;
            *size = (blocks / BLOCKS_MIN).max(1).ilog2();
        }
        sizes
    }

    /// Whether a table is of another order than when these sizes were read.
    pub(super) fn have_grown(self, now: Sizes) -> bool {
        self.0.iter().zip(now.0).any(|(before, now)| now > *before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_concern_what_uses_a_table_that_grows() {
        assert!(Sizes::concern("UPDATE jobs SET priority = 0"));
        assert!(!Sizes::concern("UPDATE workers SET heartbeats = heartbeats + 1"));
    }

    #[test]
    fn a_table_has_grown_when_its_size_has_doubled() {
        let sizes = |jobs_blocks: u64, runs_blocks: u64| {
            Sizes::read(&format!("{} {} 0 0", jobs_blocks * BLOCK_BYTES, runs_blocks * BLOCK_BYTES))
        };
        for (before, now, expected) in [
            ((0, 0), (15, 15), false),
            ((0, 0), (16, 0), true),
            ((0, 0), (0, 16), true),
            ((16, 0), (31, 0), false),
            ((1_000_000, 16), (1_000_000, 32), true),
            ((1_000_000, 16), (500, 16), false),
        ] {
            let (before, now) = (sizes(before.0, before.1), sizes(now.0, now.1));
            assert_eq!(before.have_grown(now), expected, "{before:?} {now:?}");
        }
        assert_eq!(Sizes::read(""), Sizes::default());
    }
}
