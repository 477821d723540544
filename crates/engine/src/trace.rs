//! The ids of traces: a run is a trace, or a part of the trace of its caller. They are derived from rows, so that they are the same
//! in each process and after each restart. The texts are those of [W3C Trace Context](https://www.w3.org/TR/trace-context/).
//! Pure.

use std::fmt;

use sha2::{Digest, Sha256};

/// The flag of a trace that its caller records.
const SAMPLED: u8 = 0b01;
/// The flags that have a meaning. The standard says that all others are sent as 0.
const KNOWN_FLAGS: u8 = 0b11;
/// The length of a `traceparent` of version 00, in bytes.
const LENGTH: usize = 55;

/// The id of a trace. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// The id of a span. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// A place in a trace, as callers and jobs are told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
    /// Whether the trace is recorded, and whether its id is random.
    flags: u8,
}

/// What identifies a row among those of all databases: the instant of its insertion and its token. Both stay the same in copies
/// and in backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey {
    /// When it was inserted.
    pub created_at: i64,
    /// Its token.
    pub token: i64,
}

/// The trace of a run and of all runs below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunTrace {
    /// Its id.
    pub trace_id: TraceId,
    /// The span of the caller, if the caller has named one.
    pub caller: Option<SpanId>,
    flags: u8,
}

impl TraceParent {
    /// Reads a `traceparent`. `None` if it is not as the standard says: then it means nothing.
    #[must_use]
    pub fn parse(text: &str) -> Option<TraceParent> {
        let bytes = text.as_bytes();
        let [version] = hex(bytes.get(0..2)?)?;
        let has_dashes = [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        // A later version may have more at its end.
        let is_long_enough = match version {
            0xff => false,
            0 => bytes.len() == LENGTH,
            1..=0xfe => bytes.get(LENGTH).is_none_or(|next| *next == b'-'),
        };
        let (trace_id, span_id) = (hex(bytes.get(3..35)?)?, hex(bytes.get(36..52)?)?);
        let [flags] = hex(bytes.get(53..LENGTH)?)?;
        let is_valid = has_dashes && is_long_enough && trace_id != [0; 16] && span_id != [0; 8];
        is_valid.then_some(TraceParent {
            trace_id: TraceId(trace_id),
            span_id: SpanId(span_id),
            flags: flags & KNOWN_FLAGS,
        })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "00-{}-{}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

impl RunTrace {
    /// The trace of the run at the top: that of its caller, or one of its own.
    #[must_use]
    pub fn of_top(run: RowKey, caller: Option<TraceParent>) -> RunTrace {
        match caller {
            Some(TraceParent { trace_id, span_id, flags }) => {
                RunTrace { trace_id, caller: Some(span_id), flags }
            }
            None => RunTrace { trace_id: TraceId(derived("trace", run, None)), caller: None, flags: SAMPLED },
        }
    }

    /// Whether the trace is recorded. The caller decides.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The flags, as spans have them.
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// The place of a span in the trace.
    #[must_use]
    pub fn at(&self, span_id: SpanId) -> TraceParent {
        TraceParent { trace_id: self.trace_id, span_id, flags: self.flags }
    }
}

impl SpanId {
    /// The span of a run.
    #[must_use]
    pub fn of_run(run: RowKey) -> SpanId {
        SpanId(derived("run", run, None))
    }

    /// The span of a job with all its attempts.
    #[must_use]
    pub fn of_job(job: RowKey) -> SpanId {
        SpanId(derived("job", job, None))
    }

    /// The span of an attempt of a job.
    #[must_use]
    pub fn of_attempt(job: RowKey, attempt: i64) -> SpanId {
        SpanId(derived("attempt", job, Some(attempt)))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// The beginning of a hash, which is not zero. `sort` keeps the ids of different things apart.
fn derived<const BYTES: usize>(sort: &str, row: RowKey, attempt: Option<i64>) -> [u8; BYTES] {
    let RowKey { created_at, token } = row;
    let text = format!("windlass {sort} {created_at}-{token} {}", attempt.unwrap_or(0));
    let hash = Sha256::digest(text.as_bytes());
    let mut id = [0; BYTES];
    id.copy_from_slice(&hash[..BYTES]);
    if id == [0; BYTES] {
        id[BYTES - 1] = 1;
    }
    id
}

/// Bytes as two digits each, with small letters.
fn hex<const BYTES: usize>(digits: &[u8]) -> Option<[u8; BYTES]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        0..=b'/' | b':'..=b'`' | b'g'..=u8::MAX => None,
    };
    if digits.len() != 2 * BYTES {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const ROW: RowKey = RowKey { created_at: 1_000_000, token: 7 };

    #[test]
    fn a_traceparent_is_read_as_the_standard_says() {
        let flags = |flags: &str| CALLER.replace("-01", flags);
        let read = |text: &str| TraceParent::parse(text).map(|read| read.to_string());
        assert_eq!(read(CALLER).as_deref(), Some(CALLER));
        assert_eq!(read(&flags("-00")), Some(flags("-00")));
        assert_eq!(read(&flags("-03")), Some(flags("-03")));
        assert_eq!(read(&flags("-ff")), Some(flags("-03")), "flags without a meaning are sent as 0");
        for later in [CALLER.replace("00-4", "01-4"), format!("{}-and-more", CALLER.replace("00-4", "cc-4"))]
        {
            assert_eq!(read(&later).as_deref(), Some(CALLER), "{later}");
        }
    }

    #[test]
    fn an_invalid_traceparent_means_nothing() {
        let later = CALLER.replace("00-4", "01-4");
        let cases = [
            String::new(),
            "00".to_owned(),
            CALLER.to_uppercase(),
            CALLER.replace("00-4", "ff-4"),
            CALLER.replace("00-4", "0-4"),
            CALLER.replace("00-4", "0g-4"),
            CALLER.replace("4bf92f3577b34da6a3ce929d0e0e4736", "00000000000000000000000000000000"),
            CALLER.replace("00f067aa0ba902b7", "0000000000000000"),
            CALLER.replace("4bf92", "4bf9"),
            CALLER.replace("-01", "-0"),
            CALLER.replace("-01", "-0x"),
            CALLER.replace('-', "_"),
            format!("{CALLER}-more"),
            format!("{CALLER} "),
            format!(" {CALLER}"),
            format!("{later}more"),
            "é".repeat(30),
        ];
        for case in cases {
            assert_eq!(TraceParent::parse(&case), None, "{case:?}");
        }
    }

    #[test]
    fn a_run_has_a_trace_of_its_own_or_that_of_its_caller() {
        let own = RunTrace::of_top(ROW, None);
        assert!(own.is_sampled() && own.caller.is_none());
        assert_eq!(own, RunTrace::of_top(ROW, None), "derived, so always the same");
        assert_ne!(own.trace_id, RunTrace::of_top(RowKey { token: 8, ..ROW }, None).trace_id);
        assert_ne!(own.trace_id, RunTrace::of_top(RowKey { created_at: 1, ..ROW }, None).trace_id);
        let caller = TraceParent::parse(&CALLER.replace("-01", "-00")).unwrap();
        let taken_up = RunTrace::of_top(ROW, Some(caller));
        assert_eq!((taken_up.trace_id, taken_up.caller), (caller.trace_id, Some(caller.span_id)));
        assert!(!taken_up.is_sampled());
        assert_eq!(taken_up.at(caller.span_id), caller);
    }

    /// Collectors have spans with these ids, and jobs have told them to others.
    #[test]
    fn the_ids_never_change() {
        let trace = RunTrace::of_top(ROW, None);
        let ids = [
            SpanId::of_run(ROW),
            SpanId::of_job(ROW),
            SpanId::of_attempt(ROW, 1),
            SpanId::of_attempt(ROW, 2),
        ];
        let ids = ids.map(|id| id.to_string());
        assert_eq!(trace.trace_id.to_string(), "d49d41134623370e314f8f01c32330f6");
        assert_eq!(ids, ["d4d3c4d5ea110eaa", "7bb04bd5e0e6cc2c", "f860312b55f39863", "c67ed0461b6003c6"]);
    }
}
