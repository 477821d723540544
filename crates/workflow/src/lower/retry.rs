//! Reads `retry`: when and how often a failed attempt is repeated.

use crate::expect::{self, ShortestDuration};
use crate::expression::Expression;
use crate::keys::{self, RETRY_IF, Table};
use crate::limits;
use crate::model::Retry;
use crate::report::{Finding, Findings, Span};
use crate::template::Templates;
use crate::tree::{Entry, Value};

/// The values of one `retry`. A missing value comes from `[defaults]`, then from [`Retry::default`].
#[derive(Debug, Clone, Default)]
pub(super) struct PartialRetry {
    max_attempts: Option<i64>,
    delay_ms: Option<i64>,
    factor: Option<f64>,
    max_delay: Option<(i64, Span)>,
    jitter: Option<f64>,
    condition: Option<Expression>,
}

impl PartialRetry {
    /// The same without `if`.
    pub(super) fn without_condition(self) -> PartialRetry {
        PartialRetry { condition: None, ..self }
    }
}

pub(super) fn read<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> PartialRetry {
    let mut retry = PartialRetry::default();
    if let Value::Integer(_) = entry.node.value {
        // `retry = 5` is what people write first. It can only mean the number of attempts.
        retry.max_attempts = expect::integer(entry, 1..=limits::ATTEMPTS, findings);
        return retry;
    }
    let expected = "a table like { max_attempts = 5, delay = \"2s\" }, or just the number of attempts";
    for part in expect::table(entry, usize::MAX, expected, findings).unwrap_or_default() {
        let Ok(key) = keys::find(part, Table::Retry, findings) else { continue };
        match key.name() {
            "max_attempts" => retry.max_attempts = expect::integer(part, 1..=limits::ATTEMPTS, findings),
            "delay" => retry.delay_ms = expect::duration_ms(part, ShortestDuration::Zero, findings),
            "factor" => retry.factor = expect::number(part, 1.0..=limits::RETRY_FACTOR, findings),
            "max_delay" => {
                let max_delay_ms = expect::duration_ms(part, ShortestDuration::Zero, findings);
                retry.max_delay = max_delay_ms.map(|max_delay_ms| (max_delay_ms, part.node.span.clone()));
            }
            "if" => retry.condition = expect::expression(part, &RETRY_IF, templates, findings),
            "jitter" => retry.jitter = expect::number(part, 0.0..=1.0, findings),
            _ => (),
        }
    }
    retry
}

impl PartialRetry {
    /// Takes missing values from `[defaults]`.
    pub(super) fn or(self, defaults: &PartialRetry) -> PartialRetry {
        PartialRetry {
            max_attempts: self.max_attempts.or(defaults.max_attempts),
            delay_ms: self.delay_ms.or(defaults.delay_ms),
            factor: self.factor.or(defaults.factor),
            max_delay: self.max_delay.or_else(|| defaults.max_delay.clone()),
            jitter: self.jitter.or(defaults.jitter),
            condition: self.condition.or_else(|| defaults.condition.clone()),
        }
    }

    /// Takes missing values from [`Retry::default`].
    pub(super) fn complete(self, findings: &mut Findings) -> Retry {
        let built_in = Retry::default();
        let delay_ms = self.delay_ms.unwrap_or(built_in.delay_ms);
        let max_delay_ms = match self.max_delay {
            Some((max_delay_ms, span)) => {
                if max_delay_ms < delay_ms {
                    findings.push(
                        Finding::new(span, "`max_delay` is shorter than `delay`")
                            .help("raise `max_delay` or lower `delay`, which is 1s by default"),
                    );
                }
                max_delay_ms
            }
            // Without a cap, a long delay must not be cut to the default cap.
            None => built_in.max_delay_ms.max(delay_ms),
        };
        Retry {
            max_attempts: self.max_attempts.unwrap_or(built_in.max_attempts),
            delay_ms,
            factor: self.factor.unwrap_or(built_in.factor),
            max_delay_ms,
            jitter: self.jitter.unwrap_or(built_in.jitter),
            condition: self.condition,
        }
    }
}
