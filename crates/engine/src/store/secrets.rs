//! The variables of workers that may have values of secrets.

use std::sync::Arc;

use windlass_db::all;
use windlass_db::error::Result;

use super::ForWorkers;

/// The variables of workers that may have values of secrets, for all definitions up to the newest one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecretVariables {
    /// The newest definition that has secrets.
    pub newest: Option<i64>,
    /// The names, sorted, without duplicates.
    pub names: Arc<[String]>,
}

impl ForWorkers<'_> {
    /// The variables that no job gets unless it names the secret.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn secret_variables(&self) -> Result<SecretVariables> {
        let definitions = self.store.read(|connection| {
            all(
                connection,
                "SELECT id, secret_variables FROM workflows WHERE secret_variables IS NOT NULL",
                &[],
                |row| Ok((row.integer(0)?, row.text(1)?)),
            )
        })?;
        let lists = definitions.iter().filter_map(|(_, list)| serde_json::from_str::<Vec<String>>(list).ok());
        let mut names: Vec<String> = lists.flatten().collect();
        names.sort_unstable();
        names.dedup();
        Ok(SecretVariables { newest: definitions.iter().map(|(id, _)| *id).max(), names: names.into() })
    }
}
