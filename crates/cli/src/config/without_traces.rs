//! `[traces]` of the configuration of a program that was built without them.

use windlass_workflow::strict::Table;

/// Refuses the table, if it is there.
pub(super) fn refuse(table: &mut Table<'_, '_>) {
    if table.value("traces").is_some() {
        table.refuse_key(
            "traces",
            "this windlass was built without the feature `otlp`, which `[traces]` needs",
            "install it with `cargo install --locked --path crates/cli --features otlp`, or remove `[traces]`",
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use windlass_workflow::{Source, strict};

    #[test]
    fn the_table_is_refused_with_the_name_of_the_feature() {
        let read = |text: &str| {
            let source = Source::new("windlass.toml", text.into()).unwrap();
            strict::read(&source, "the configuration", refuse).map_err(|report| report.to_string())
        };
        assert_eq!(read(""), Ok(()));
        for text in ["[traces]\n", "[traces]\nendpoint = 'http://x/'\n", "traces = 1\n"] {
            let report = read(text).unwrap_err();
            assert!(report.contains("--features otlp"), "{report}");
            assert_eq!(report.matches("error: ").count(), 1, "{report}");
        }
    }
}
