//! Queues: which are paused.

use super::Store;
use crate::db::all;
use crate::error::Result;
use crate::signal::Hints;

impl Store {
    /// Pauses a queue: nothing is claimed from it until it is resumed. What runs is not disturbed.
    ///
    /// # Errors
    /// The database's.
    pub fn pause_queue(&self, name: &str) -> Result<()> {
        let (name, now_ms) = (name.to_owned(), self.clock.now_ms());
        self.write("pause a queue", move |connection| {
            connection.execute(
                "INSERT INTO queues (name, paused_at, created_at) VALUES ($1, $2, $2)
                 ON CONFLICT (name) DO UPDATE SET paused_at = coalesce(queues.paused_at, $2)",
                &[(&name).into(), now_ms.into()],
            )?;
            Ok(())
        })
    }

    /// Ends the pause of a queue.
    ///
    /// # Errors
    /// The database's.
    pub fn resume_queue(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.write("resume a queue", move |connection| {
            connection.execute("UPDATE queues SET paused_at = NULL WHERE name = $1", &[(&name).into()])?;
            connection.hint(Hints::PENDING);
            Ok(())
        })
    }

    /// The names of the paused queues.
    ///
    /// # Errors
    /// The database's.
    pub fn paused_queues(&self) -> Result<Vec<String>> {
        self.read(|connection| {
            all(connection, "SELECT name FROM queues WHERE paused_at IS NOT NULL ORDER BY name", &[], |row| {
                row.text(0)
            })
        })
    }
}
