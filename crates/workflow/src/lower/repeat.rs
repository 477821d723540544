//! Reads `repeat`: a job that is executed in rounds until a condition holds.

use crate::expect::{self, ShortestDuration};
use crate::keys::{self, REPEAT_UNTIL, Table};
use crate::limits;
use crate::model::Repetition;
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::Entry;

const EXPECTED: &str = "a table like { until = \"output.state == 'done'\", every = \"30s\", max = 100 }";

pub(super) fn read<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Repetition> {
    let (mut until, mut every_ms, mut max) = (None, None, Some(limits::ROUNDS_DEFAULT));
    let (mut has_until, mut has_every, mut is_wrong) = (false, false, false);
    for part in expect::table(entry, usize::MAX, EXPECTED, findings)? {
        let Ok(key) = keys::find(part, Table::Repeat, findings) else {
            is_wrong = true;
            continue;
        };
        match key.name() {
            "until" => {
                has_until = true;
                until = expect::expression(part, &REPEAT_UNTIL, templates, findings);
            }
            "every" => {
                has_every = true;
                every_ms = expect::duration_ms(part, ShortestDuration::Zero, findings);
                if every_ms == Some(0) {
                    let message = "`every` must be longer than zero";
                    let finding = Finding::new(part.node.span.clone(), message);
                    findings.push(finding.help("a pause of a second is written every = \"1s\""));
                }
            }
            "max" => max = expect::integer(part, 1..=limits::ROUNDS, findings),
            _ => (),
        }
    }
    for (key, is_there, help) in [
        (
            "until",
            has_until,
            "add the condition that ends the rounds, like until = \"output.state == 'done'\"",
        ),
        ("every", has_every, "add the pause between two rounds, like every = \"30s\""),
    ] {
        // A misspelled key was reported.
        if !is_there && !is_wrong {
            findings
                .push(Finding::new(entry.key_span.clone(), format!("`repeat` has no `{key}`")).help(help));
        }
    }
    Some(Repetition { until: until?, every_ms: every_ms?, max: max? })
}
