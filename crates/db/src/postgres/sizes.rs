//! The sizes of the tables, as far as they matter for plans.
//!
//! The server keeps a plan until the statistics of a table change. A plan for ten rows may read the whole table, and would
//! still do so for a million rows. So the sizes of the tables are read from time to time, and statements are planned again
//! when a table has doubled. Reading the sizes waits for transactions that have locked a table. So only a statement that uses
//! the tables reads them first; renewing a lease does not wait for a long migration.

use super::client::Client;

/// Smaller tables count as this size.
const BLOCKS_MIN: u64 = 8;
/// The server's default size of a block. Another size only shifts the steps.
const BLOCK_BYTES: u64 = 8_192;

/// For each table the number of times that its size has doubled since [`BLOCKS_MIN`].
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Sizes(Vec<u32>);

impl Sizes {
    /// The SQL that reads the sizes. The schema's name contains no quotes.
    pub(super) fn query(schema: &str, tables: &[&str]) -> String {
        let sizes: Vec<String> = tables
            .iter()
            .map(|table| format!("coalesce(pg_relation_size(to_regclass('\"{schema}\".{table}')), 0)"))
            .collect();
        format!("SELECT concat_ws(' ', {})", sizes.join(", "))
    }

    /// Reads the sizes.
    ///
    /// # Errors
    /// The server's error.
    pub(super) fn read(client: &mut Client, query: &str) -> Result<Sizes, postgres::Error> {
        let rows = client.query_typed(query, &[])?;
        rows.first().map_or(Ok(Sizes::default()), |row| row.try_get(0).map(Sizes::parse))
    }

    /// Parses the server's answer.
    fn parse(answer: &str) -> Sizes {
        let doublings = |bytes: &str| {
            let blocks = bytes.parse().unwrap_or(0_u64) / BLOCK_BYTES;
            (blocks / BLOCKS_MIN).max(1).ilog2()
        };
        Sizes(answer.split(' ').map(doublings).collect())
    }

    /// Whether a table has at least doubled since these sizes were read.
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
            Sizes::parse(&format!("{} {} 0 0", jobs_blocks * BLOCK_BYTES, runs_blocks * BLOCK_BYTES))
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
        assert!(!Sizes::parse("").have_grown(&Sizes::default()));
    }
}
