//! Parses YAML 1.2 into the tree.
//!
//! Only what JSON has too is accepted: mappings with texts as keys, lists, texts, numbers, booleans and null. Plain values are
//! read as the core schema says, so `no` and `on` are texts. There are no tags and no merge keys. An alias is a copy of what
//! its anchor names, and the copies of a file have at most [`limits::YAML_COPIES`] parts.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput};

use super::{CHECKED_LATER, Entry, Node, Value, number_out_of_range, too_deep};
use crate::limits;
use crate::report::{Finding, Findings, Span};

pub(super) fn read<'s>(text: &'s str, findings: &mut Findings) -> Option<Vec<Entry<'s>>> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        offsets: Offsets { text, chars: 0, bytes: 0 },
        anchors: HashMap::new(),
        stored: Copied::default(),
        copied: Copied::default(),
        parts: 0,
        findings,
    };
    let document = reader.document();
    match document {
        Ok(Some(Node { value: Value::Table(entries), .. })) => Some(entries),
        Ok(Some(other)) => {
            findings.push(not_a_mapping(other.span));
            None
        }
        Ok(None) => {
            findings.push(not_a_mapping(0..text.len()));
            None
        }
        Err(finding) => {
            findings.push(*finding);
            None
        }
    }
}

/// An error after which the rest of the file can't be read.
type Broken = Box<Finding>;

struct Reader<'s, 'f> {
    parser: Parser<'s, StrInput<'s>>,
    offsets: Offsets<'s>,
    /// What anchors name, by their number, as long as the limit allows it.
    anchors: HashMap<usize, Node<'s>>,
    /// What is stored for anchors, and what aliases have copied.
    stored: Copied,
    copied: Copied,
    parts: usize,
    findings: &'f mut Findings,
}

/// How much was copied so far.
#[derive(Default)]
struct Copied {
    parts: usize,
    bytes: usize,
}

impl<'s> Reader<'s, '_> {
    /// The value of the only document. Nothing if the file is empty.
    fn document(&mut self) -> Result<Option<Node<'s>>, Broken> {
        let mut value = None;
        let mut documents = 0;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::DocumentStart(_) if documents == 1 => {
                    let finding = Finding::new(span, "the file has several documents");
                    return Err(Box::new(finding.help("a workflow file is one document; remove the `---`")));
                }
                Event::DocumentStart(_) => {
                    documents = 1;
                    let (event, span) = self.next()?;
                    value = Some(self.node(event, span, 0)?);
                }
                Event::StreamEnd => return Ok(value),
                Event::Nothing
                | Event::StreamStart
                | Event::DocumentEnd
                | Event::Alias(_)
                | Event::Scalar(..)
                | Event::SequenceStart(..)
                | Event::SequenceEnd
                | Event::MappingStart(..)
                | Event::MappingEnd => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'s>, Span), Broken> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let start = self.offsets.byte(span.start.index());
                let end = self.offsets.byte(span.end.index()).max(start);
                self.count(&event)?;
                Ok((event, start..end))
            }
            Some(Err(error)) => Err(self.syntax_error(&error)),
            None => Ok((Event::StreamEnd, self.offsets.text.len()..self.offsets.text.len())),
        }
    }

    /// Counts what the tree will need, as for the other formats.
    fn count(&mut self, event: &Event<'_>) -> Result<(), Broken> {
        self.parts += match event {
            Event::MappingStart(..) => 8,
            Event::SequenceStart(..) => 4,
            Event::Scalar(..) | Event::Alias(_) => 2,
            Event::Nothing
            | Event::StreamStart
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::StreamEnd
            | Event::SequenceEnd
            | Event::MappingEnd => 0,
        };
        match self.parts > limits::PARTS {
            true => Err(Box::new(super::too_many_parts())),
            false => Ok(()),
        }
    }

    fn node(&mut self, event: Event<'s>, span: Span, depth: usize) -> Result<Node<'s>, Broken> {
        if depth > limits::NESTING {
            return Err(Box::new(too_deep(span)));
        }
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.is_some(), &span);
                let value = match style {
                    ScalarStyle::Plain => plain(text, &span, self.findings),
                    ScalarStyle::SingleQuoted
                    | ScalarStyle::DoubleQuoted
                    | ScalarStyle::Literal
                    | ScalarStyle::Folded => Value::Text(text),
                };
                (Node { span, value }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), &span);
                (self.list(span, depth)?, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), &span);
                (self.table(span, depth)?, anchor)
            }
            Event::Alias(anchor) => return self.copy(anchor, span, depth),
            Event::Nothing
            | Event::StreamStart
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::StreamEnd
            | Event::SequenceEnd
            | Event::MappingEnd => {
                let finding = Finding::new(span, "the file is not valid YAML");
                return Err(Box::new(finding.label("a value is missing")));
            }
        };
        if anchor > 0 {
            // What is too large for a copy is an error only if an alias asks for it.
            if let Some(copy) = self.stored.copy(&node) {
                self.anchors.insert(anchor, copy);
            }
        }
        Ok(node)
    }

    fn list(&mut self, start: Span, depth: usize) -> Result<Node<'s>, Broken> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                let span = self.whole(&start, &span);
                return Ok(Node { span, value: Value::List(items) });
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn table(&mut self, start: Span, depth: usize) -> Result<Node<'s>, Broken> {
        let mut entries: Vec<Entry<'s>> = Vec::new();
        let mut seen: HashMap<String, Span> = HashMap::new();
        loop {
            let (event, key_span) = self.next()?;
            let key = match event {
                Event::MappingEnd => {
                    let span = self.whole(&start, &key_span);
                    return Ok(Node { span, value: Value::Table(entries) });
                }
                Event::Scalar(key, _, _, tag) => {
                    self.refuse_tag(tag.is_some(), &key_span);
                    key
                }
                Event::Nothing
                | Event::StreamStart
                | Event::StreamEnd
                | Event::DocumentStart(_)
                | Event::DocumentEnd
                | Event::Alias(_)
                | Event::SequenceStart(..)
                | Event::SequenceEnd
                | Event::MappingStart(..) => return Err(Box::new(self.not_a_key(key_span))),
            };
            if let Some(first) = seen.get(key.as_ref()) {
                let message = format!("`{key}` is defined twice");
                self.findings.push(
                    Finding::new(key_span.clone(), message)
                        .label("the second definition")
                        .related(first.clone(), "the first definition")
                        .help("remove or rename one of them"),
                );
            } else {
                seen.insert(key.clone().into_owned(), key_span.clone());
            }
            let (event, span) = self.next()?;
            let node = self.node(event, span, depth + 1)?;
            entries.push(Entry { key, key_span, node });
        }
    }

    /// What an alias stands for. Its position is that of the alias.
    fn copy(&mut self, anchor: usize, span: Span, depth: usize) -> Result<Node<'s>, Broken> {
        let Some(node) = self.anchors.get(&anchor) else {
            if self.stored.is_full() {
                return Err(too_many_copies(span));
            }
            let finding = Finding::new(span, "the file is not valid YAML");
            return Err(Box::new(finding.label("an alias inside of what it names")));
        };
        if depth + height(node) > limits::NESTING {
            return Err(Box::new(too_deep(span)));
        }
        match self.copied.copy(node) {
            Some(copy) => Ok(Node { span, value: copy.value }),
            None => Err(too_many_copies(span)),
        }
    }

    /// The position of a list or a table: all of it between brackets, else its first line.
    fn whole(&self, start: &Span, end: &Span) -> Span {
        let text = self.offsets.text;
        let rest = text.get(start.start..).unwrap_or_default();
        if rest.starts_with(['[', '{']) {
            return start.start..end.end.max(start.start + 1);
        }
        let line = rest.lines().next().unwrap_or_default().trim_end();
        start.start..start.start + line.len()
    }

    fn refuse_tag(&mut self, has_tag: bool, span: &Span) {
        if has_tag {
            let finding = Finding::new(span.clone(), "the value has a tag, like `!!str`");
            self.findings.push(finding.help("remove the tag; a text is written in quotes"));
        }
    }

    /// `{{ x }}` without quotes is a table in a table for YAML.
    fn not_a_key(&self, span: Span) -> Finding {
        let before = self.offsets.text.get(..span.start).unwrap_or_default();
        let finding = Finding::new(span, "a key must be a text");
        match before.ends_with('{') {
            true => finding.help("a text that begins with {{ needs quotes: \"{{ … }}\""),
            false => finding,
        }
    }

    fn syntax_error(&mut self, error: &ScanError) -> Broken {
        let at = self.offsets.byte(error.marker().index());
        let finding = Finding::new(at..at + 1, "the file is not valid YAML").label(error.info());
        Box::new(finding.help(CHECKED_LATER))
    }
}

impl Copied {
    fn is_full(&self) -> bool {
        self.parts > limits::YAML_COPIES || self.bytes > limits::TEMPLATE_OUTPUT_BYTES
    }

    /// A copy of a value, if the limit allows it.
    fn copy<'s>(&mut self, node: &Node<'s>) -> Option<Node<'s>> {
        self.parts += 1;
        if let Value::Text(text) = &node.value {
            self.bytes += text.len();
        }
        if self.is_full() {
            return None;
        }
        let value = match &node.value {
            Value::Text(text) => Value::Text(text.clone()),
            Value::Integer(integer) => Value::Integer(*integer),
            Value::Number(number) => Value::Number(*number),
            Value::Boolean(boolean) => Value::Boolean(*boolean),
            Value::Date(date) => Value::Date(date.clone()),
            Value::Null => Value::Null,
            Value::Broken => return None,
            Value::List(items) => {
                Value::List(items.iter().map(|item| self.copy(item)).collect::<Option<_>>()?)
            }
            Value::Table(entries) => {
                let copy = |entry: &Entry<'s>| {
                    self.bytes += entry.key.len();
                    let node = self.copy(&entry.node)?;
                    Some(Entry { key: entry.key.clone(), key_span: entry.key_span.clone(), node })
                };
                Value::Table(entries.iter().map(copy).collect::<Option<_>>()?)
            }
        };
        Some(Node { span: node.span.clone(), value })
    }
}

fn too_many_copies(span: Span) -> Broken {
    Box::new(
        Finding::new(span, "the aliases of the file copy too much")
            .label(format!("the limit is {} values and 1 MiB of texts in all", limits::YAML_COPIES))
            .help("write the values where they are needed"),
    )
}

/// How many lists and tables a value has inside each other.
fn height(node: &Node<'_>) -> usize {
    match &node.value {
        Value::List(items) => 1 + items.iter().map(height).max().unwrap_or(0),
        Value::Table(entries) => 1 + entries.iter().map(|entry| height(&entry.node)).max().unwrap_or(0),
        Value::Text(_)
        | Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken => 0,
    }
}

/// A plain value, by the core schema of YAML 1.2.
fn plain<'s>(text: Cow<'s, str>, span: &Span, findings: &mut Findings) -> Value<'s> {
    match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Boolean(true),
        "false" | "False" | "FALSE" => return Value::Boolean(false),
        ".nan" | ".NaN" | ".NAN" => return Value::Number(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Value::Number(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Value::Number(f64::NEG_INFINITY),
        _ => {}
    }
    let integer = match text.get(..2) {
        Some("0x") if is_all(&text[2..], |byte| byte.is_ascii_hexdigit()) => {
            i64::from_str_radix(&text[2..], 16)
        }
        Some("0o") if is_all(&text[2..], |byte| (b'0'..=b'7').contains(&byte)) => {
            i64::from_str_radix(&text[2..], 8)
        }
        _ if is_all(text.trim_start_matches(['-', '+']), |byte| byte.is_ascii_digit())
            && signs(&text) <= 1 =>
        {
            text.parse()
        }
        _ if is_float(&text) => {
            return match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Value::Number(number),
                Ok(_) | Err(_) => {
                    findings.push(number_out_of_range(span.clone()));
                    Value::Broken
                }
            };
        }
        _ => return Value::Text(text),
    };
    integer.map_or_else(
        |_error| {
            findings.push(number_out_of_range(span.clone()));
            Value::Broken
        },
        Value::Integer,
    )
}

fn is_all(text: &str, is_right: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(is_right)
}

/// How many signs a text begins with.
fn signs(text: &str) -> usize {
    text.len() - text.trim_start_matches(['-', '+']).len()
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_is_right = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && is_digits(digits)
    });
    is_digits(whole) && is_digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_is_right
}

/// Turns positions in characters, which the parser gives, into positions in bytes. They come nearly in order.
struct Offsets<'s> {
    text: &'s str,
    chars: usize,
    bytes: usize,
}

impl Offsets<'_> {
    fn byte(&mut self, at: usize) -> usize {
        while self.chars > at {
            let before = self.text[..self.bytes].chars().next_back();
            self.bytes -= before.map_or(0, char::len_utf8);
            self.chars -= 1;
        }
        while self.chars < at {
            let Some(next) = self.text[self.bytes..].chars().next() else { break };
            self.bytes += next.len_utf8();
            self.chars += 1;
        }
        self.bytes
    }
}

fn not_a_mapping(span: Span) -> Finding {
    Finding::new(span, "a workflow file in YAML is one mapping")
        .label("expected `jobs:` and the jobs below it")
}
