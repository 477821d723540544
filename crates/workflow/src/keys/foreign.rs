//! Keys of other tools for which Windlass has a pattern and no key of its own.

use crate::key::Table;

/// What to write instead of a key that the table does not have. The key is in small letters, with `_` between its words.
pub(super) fn instead_of(written: &str, table: Table) -> Option<&'static str> {
    let known: &[(&[&str], &str)] = match table {
        Table::Job => &[
            (
                &["steps"],
                "each step is a job of its own: give it a name, and `needs`; workspace = true at the top gives them one folder",
            ),
            (&["strategy"], "write for_each = { matrix = { … } }"),
            (&["services", "sidecars"], "a job starts the service, and a job in [finally] ends it"),
            (
                &["uses"],
                "there are no actions: a program does it, as in run = \"git clone …\"; another workflow is called with `workflow`",
            ),
            (&["stdout", "stderr"], "redirect it in `run`: ./x > FILE; `output` keeps what the job prints"),
            (
                &["wait"],
                "a job that calls a workflow waits for its end; to start runs without waiting use `signal` and [[triggers]]",
            ),
        ],
        Table::ForEach => &[(&["include"], "write all items as a list: for_each = [{ … }, { … }]")],
        Table::Container => &[
            (&["env", "environment"], "the `env` of the job reaches the container"),
            (&["memory", "cpus", "resources", "ports"], "write the line as run = \"docker run …\""),
        ],
        Table::Trigger => &[
            (&["cron", "every", "schedule", "at"], "write it below [[schedules]]"),
            (
                &["webhook", "http", "url"],
                "name the event here, and the webhook in windlass.toml: [hooks.NAME] with event = \"…\"",
            ),
        ],
        Table::Repeat => &[(&["while"], "write the opposite as `until`")],
        Table::Workflow => &[(
            &["case", "cases", "tests"],
            "cases stand in a file of their own beside this one: NAME.test.toml beside NAME.toml",
        )],
        Table::Param
        | Table::Schedule
        | Table::Defaults
        | Table::LocalWorkflow
        | Table::Secret
        | Table::Workspace
        | Table::Retry
        | Table::Concurrency
        | Table::RunConcurrency
        | Table::Artifact
        | Table::Http
        | Table::Auth
        | Table::Sleep
        | Table::WaitFor
        | Table::Approval
        | Table::Signal => &[],
    };
    known.iter().find(|(words, _help)| words.contains(&written)).map(|(_words, help)| *help)
}
