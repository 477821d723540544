//! The text format of Prometheus, version 0.0.4. Every metric is written with its help and its type, once.

use std::fmt::Write;

use windlass_engine::measurements::HistogramValues;

/// What monitors may do with the values of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricType {
    /// It grows only, and begins at 0 with each process.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// A text that is being written.
#[derive(Debug, Default)]
pub(super) struct MetricsText(String);

/// A name and a value.
type Label<'l> = (&'static str, &'l str);

impl MetricsText {
    /// Begins a metric. Its values follow.
    pub(super) fn metric(&mut self, name: &'static str, help: &str, metric_type: MetricType) {
        let metric_type = match metric_type {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
        };
        self.head(name, help, metric_type);
    }

    /// Begins a histogram.
    pub(super) fn histogram(&mut self, name: &'static str, help: &str) {
        self.head(name, help, "histogram");
    }

    fn head(&mut self, name: &str, help: &str, metric_type: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {metric_type}");
    }

    /// A value of the metric.
    pub(super) fn value(&mut self, name: &'static str, labels: &[Label<'_>], value: impl std::fmt::Display) {
        self.0.push_str(name);
        self.labels(labels);
        let _ = writeln!(self.0, " {value}");
    }

    /// The values of a histogram.
    pub(super) fn values(&mut self, name: &'static str, labels: &[Label<'_>], values: &HistogramValues) {
        let above_all = std::iter::once(("+Inf".to_owned(), values.count));
        let buckets = values.buckets.iter().map(|(bound, count)| (bound.to_string(), *count));
        for (bound, count) in buckets.chain(above_all) {
            let _ = write!(self.0, "{name}_bucket");
            let mut with_bound = labels.to_vec();
            with_bound.push(("le", &bound));
            self.labels(&with_bound);
            let _ = writeln!(self.0, " {count}");
        }
        for (suffix, value) in [("sum", values.sum_s.to_string()), ("count", values.count.to_string())] {
            let _ = write!(self.0, "{name}_{suffix}");
            self.labels(labels);
            let _ = writeln!(self.0, " {value}");
        }
    }

    fn labels(&mut self, labels: &[Label<'_>]) {
        if labels.is_empty() {
            return;
        }
        let pairs: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let _ = write!(self.0, "{{{}}}", pairs.join(","));
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_help_types_and_escaped_labels() {
        let mut text = MetricsText::default();
        text.metric("jobs", "Jobs.", MetricType::Gauge);
        text.value("jobs", &[("queue", "a\"b\\c\nd")], 3);
        text.histogram("wait_seconds", "Waits.");
        let values = HistogramValues { buckets: vec![(0.5, 1), (1.0, 2)], count: 3, sum_s: 4.25 };
        text.values("wait_seconds", &[("queue", "x")], &values);
        let expected = "# HELP jobs Jobs.\n# TYPE jobs gauge\njobs{queue=\"a\\\"b\\\\c\\nd\"} 3\n\
                        # HELP wait_seconds Waits.\n# TYPE wait_seconds histogram\n\
                        wait_seconds_bucket{queue=\"x\",le=\"0.5\"} 1\nwait_seconds_bucket{queue=\"x\",le=\"1\"} 2\n\
                        wait_seconds_bucket{queue=\"x\",le=\"+Inf\"} 3\n\
                        wait_seconds_sum{queue=\"x\"} 4.25\nwait_seconds_count{queue=\"x\"} 3\n";
        assert_eq!(text.into_text(), expected);
    }
}
