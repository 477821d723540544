//! What this crate knows about the tables of the program that uses the database.

/// The description of a program's tables.
#[derive(Debug)]
pub struct Tables {
    /// The statements that create and change the tables, in the order of their versions. Migrations are only added.
    pub migrations: &'static [Migration],
    /// The names of all tables and views. A database without migrations that has one of them belongs to another program.
    pub names: &'static [&'static str],
    /// The tables whose size decides how a server plans a statement.
    pub growing: &'static [&'static str],
    /// Parts of statements that several statements share.
    pub fragments: &'static [Fragment],
    /// The statement that gives a new database its unique name, `$1`, unless it has one.
    pub name_database: &'static str,
    /// The statement that gives a copy of a database a unique name of its own, `$1`.
    pub rename_database: &'static str,
}

impl Tables {
    /// The version that the last migration brings the tables to.
    #[must_use]
    pub const fn version(&self) -> i64 {
        match self.migrations {
            [] => 0,
            [.., last] => last.version,
        }
    }
}

/// One step from a version of the tables to the next.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Counted from 1.
    pub version: i64,
    /// A short description for the table of migrations.
    pub name: &'static str,
    /// Its statements for both databases, with tokens.
    pub sql: &'static str,
    /// Statements that only PostgreSQL needs, run after `sql`.
    pub postgres: &'static str,
}

/// A part of a statement. `{name}` in a statement stands for `sql`.
#[derive(Debug, Clone, Copy)]
pub struct Fragment {
    /// Lower-case letters and underscores; not a token of [`Dialect`](super::Dialect).
    pub name: &'static str,
    /// The text. It may contain tokens of [`Dialect`](super::Dialect), and no other fragment.
    pub sql: &'static str,
}
