//! How large the tables are, as far as it matters for a plan.
//!
//! The server keeps a plan until a table's statistics are made anew. A plan for ten rows may read them all, and
//! would go on doing so when there are a million. So the server is asked from time to time how large the files of
//! the tables are, and plans are made anew when one has doubled. The answer waits for whoever has locked one of the
//! tables, so it is asked for only by what is about to use them: a lease is renewed while a migration takes long.

use super::client::Client;

/// Below that all sizes are one.
const BLOCKS_MIN: u64 = 8;
/// The server's usual size of a block. Another one shifts the steps, no more.
const BLOCK_BYTES: u64 = 8_192;

/// For each table how often its least size was doubled.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Sizes(Vec<u32>);

impl Sizes {
    /// What the server is asked. The schema's name needs no quotes within.
    pub(super) fn question(schema: &str, tables: &[&str]) -> String {
        let sizes: Vec<String> = tables
            .iter()
            .map(|table| format!("coalesce(pg_relation_size(to_regclass('\"{schema}\".{table}')), 0)"))
            .collect();
        format!("SELECT concat_ws(' ', {})", sizes.join(", "))
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
        let doublings = |bytes: &str| {
            let blocks = bytes.parse().unwrap_or(0_u64) / BLOCK_BYTES;
            (blocks / BLOCKS_MIN).max(1).ilog2()
        };
        Sizes(answer.split(' ').map(doublings).collect())
    }

    /// Whether a table is of another order than when these sizes were read.
    pub(super) fn have_grown(&self, now: &Sizes) -> bool {
        let before = self.0.iter().copied().chain(std::iter::repeat(0));
        now.0.iter().zip(before).any(|(now, before)| *now > before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(before.have_grown(&now), expected, "{before:?} {now:?}");
        }
        assert!(!Sizes::read("").have_grown(&Sizes::default()));
    }
}
