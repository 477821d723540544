//! Reads the keys of the kind `http`.

use std::collections::BTreeMap;

use super::check::{check_basic, check_header, check_header_name, check_url};
use super::{Auth, Http, Method, OUTPUT_BODY_BYTES, RequestBody, SAVED_BODY_BYTES, keys};
use crate::expect::{self, ShortestDuration};
use crate::key::{Key, Table};
use crate::keys::find;
use crate::kinds::{Action, Defaults, read_json};
use crate::limits;
use crate::report::{Finding, Findings};
use crate::template::{Templates, is_template};
use crate::tree::{Entry, Node, Value};

/// What `http` says, before defaults are filled in.
#[derive(Default)]
struct Fields<'t, 's> {
    method: Option<Method>,
    url: Option<String>,
    /// There is a `url`, or a key that was probably meant to be one. If it is wrong, that was reported.
    has_url: bool,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    /// The bodies, each with its entry. Only one is right.
    bodies: Vec<(&'t Entry<'s>, Option<RequestBody>)>,
    /// The entry of `auth`, and its value.
    auth: Option<(&'t Entry<'s>, Option<Auth>)>,
    timeout_ms: Option<i64>,
    max_bytes: Option<&'t Entry<'s>>,
    follow: Option<bool>,
    save: Option<String>,
}

pub(super) fn read<'t>(
    entries: &[&'t Entry<'_>],
    _defaults: &Defaults,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Action> {
    let entry = *entries.iter().find(|entry| entry.key == keys::ACTION.name())?;
    let before = findings.count();
    if let Value::Text(_) = &entry.node.value {
        let url = read_url(&entry.node, "`http`", templates, findings)?;
        return Some(Http::get(url).into());
    }
    let parts = expect::table(entry, usize::MAX, "a table with `url`, or an address", findings)?;
    let mut fields = Fields::default();
    for part in parts {
        take(part, &mut fields, templates, findings);
    }
    let http = complete(entry, fields, findings)?;
    (findings.count() == before).then(|| http.into())
}

fn take<'t, 's>(
    entry: &'t Entry<'s>,
    fields: &mut Fields<'t, 's>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) {
    let key = match find(entry, Table::Http, findings) {
        Ok(key) => key,
        Err(unknown) => {
            fields.has_url |= unknown.meant == Some(keys::URL.name());
            return;
        }
    };
    match key.name() {
        "method" => fields.method = read_method(entry, findings),
        "url" => {
            fields.has_url = true;
            fields.url = read_url(&entry.node, "`url`", templates, findings);
        }
        "query" => fields.query = read_values(entry, &keys::QUERY, templates, findings).unwrap_or_default(),
        "headers" => fields.headers = read_headers(entry, templates, findings),
        "json" => {
            let json = read_json(&entry.node, &keys::JSON, templates, findings);
            fields.bodies.push((entry, json.map(RequestBody::Json)));
        }
        "body" => {
            templates.add(&entry.node, &keys::BODY);
            let text = expect::text(&entry.node, "`body`", findings).map(str::to_owned);
            fields.bodies.push((entry, text.map(RequestBody::Text)));
        }
        "form" => {
            let form = read_values(entry, &keys::FORM, templates, findings);
            fields.bodies.push((entry, form.map(RequestBody::Form)));
        }
        "auth" => fields.auth = Some((entry, read_auth(entry, templates, findings))),
        "timeout" => {
            fields.timeout_ms = expect::duration_ms(entry, ShortestDuration::OneMillisecond, findings);
        }
        "max_bytes" => fields.max_bytes = Some(entry),
        "follow" => fields.follow = expect::boolean(entry, findings),
        "save" => {
            templates.add(&entry.node, &keys::SAVE);
            fields.save = expect::filled_text(&entry.node, "`save`", findings).map(str::to_owned);
        }
        _ => (),
    }
}

fn complete(entry: &Entry<'_>, fields: Fields<'_, '_>, findings: &mut Findings) -> Option<Http> {
    check_bodies(&fields, findings);
    if let (Some((auth, _)), true) = (&fields.auth, has_authorization(&fields.headers)) {
        let message = "`auth` and the header `Authorization` say the same thing twice";
        findings.push(Finding::new(auth.key_span.clone(), message).help("remove one of them"));
    }
    let largest = if fields.save.is_some() { SAVED_BODY_BYTES } else { OUTPUT_BODY_BYTES };
    let max_bytes = fields.max_bytes.and_then(|entry| read_max_bytes(entry, largest, findings));
    if !fields.has_url {
        let finding = Finding::new(entry.key_span.clone(), "`http` has no `url`");
        findings.push(finding.help("add url = \"https://…\""));
    }
    let body = fields.bodies.into_iter().find_map(|(_, body)| body);
    let default_method = if body.is_some() { Method::Post } else { Method::Get };
    Some(Http {
        method: fields.method.unwrap_or(default_method),
        url: fields.url?,
        query: fields.query,
        headers: fields.headers,
        body,
        auth: fields.auth.and_then(|(_, auth)| auth),
        timeout_ms: fields.timeout_ms.unwrap_or(super::DEFAULT_TIMEOUT_MS),
        max_bytes,
        follow: fields.follow.unwrap_or(true),
        save: fields.save,
    })
}

/// A request has one body, and GET and HEAD have none.
fn check_bodies(fields: &Fields<'_, '_>, findings: &mut Findings) {
    if let [(first, _), (second, _), ..] = fields.bodies.as_slice() {
        let message = format!("`http` has both `{}` and `{}`", first.key, second.key);
        let related = format!("`{}` is here", first.key);
        findings.push(
            Finding::new(second.key_span.clone(), message)
                .related(first.key_span.clone(), related)
                .help("a request has one body; keep one of them"),
        );
    }
    if let (Some((body, _)), Some(method)) = (fields.bodies.first(), fields.method)
        && !method.may_have_body()
    {
        let message = format!("a {} request has no body", method.name());
        let help = format!("write method = \"POST\", or remove `{}`", body.key);
        findings.push(Finding::new(body.key_span.clone(), message).help(help));
    }
}

fn has_authorization(headers: &BTreeMap<String, String>) -> bool {
    headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
}

fn read_method(entry: &Entry<'_>, findings: &mut Findings) -> Option<Method> {
    let words = Method::ALL.map(|method| (method.name(), method));
    expect::word(entry, &words, findings)
}

fn read_url<'t>(
    node: &'t Node<'_>,
    what: &str,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<String> {
    templates.add(node, &keys::URL);
    let url = expect::filled_text(node, what, findings)?;
    if !is_template(url)
        && let Err(reason) = check_url(url)
    {
        let finding = Finding::new(node.span.clone(), format!("{what} is not an address"));
        findings.push(finding.label(reason));
        return None;
    }
    Some(url.to_owned())
}

fn read_max_bytes(entry: &Entry<'_>, largest: i64, findings: &mut Findings) -> Option<i64> {
    if let Value::Integer(bytes) = entry.node.value
        && largest == OUTPUT_BODY_BYTES
        && (largest + 1..=SAVED_BODY_BYTES).contains(&bytes)
    {
        let message =
            format!("`max_bytes` is out of range: a body of more than {largest} bytes needs `save`");
        let help = "add save = \"answer.bin\", and read the file in the next job";
        findings.push(Finding::new(entry.node.span.clone(), message).help(help));
        return None;
    }
    expect::integer(entry, 1..=largest, findings)
}

fn read_headers<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> BTreeMap<String, String> {
    let headers = read_values(entry, &keys::HEADERS, templates, findings).unwrap_or_default();
    let Value::Table(parts) = &entry.node.value else { return headers };
    let mut seen: Vec<String> = Vec::new();
    for part in parts {
        let value = headers.get(part.key.as_ref()).filter(|value| !is_template(value));
        let checked = match value {
            Some(value) => check_header(&part.key, value),
            None => check_header_name(&part.key),
        };
        if let Err(reason) = checked {
            let message = format!("`{}` is not a header that a request can have", part.key);
            findings.push(Finding::new(part.key_span.clone(), message).label(reason));
        }
        let folded = part.key.to_ascii_lowercase();
        if seen.contains(&folded) {
            let message = format!("the header `{}` is there twice", part.key);
            findings.push(
                Finding::new(part.key_span.clone(), message).help("the case of the letters has no meaning"),
            );
        }
        seen.push(folded);
    }
    headers
}

/// Reads a table of names and texts, numbers, booleans or dates.
fn read_values<'t>(
    entry: &'t Entry<'_>,
    key: &Key,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<BTreeMap<String, String>> {
    let parts = expect::table(entry, limits::ENV_ENTRIES, "a table of names and values", findings)?;
    let mut values = BTreeMap::new();
    for part in parts {
        templates.add(&part.node, key);
        if part.key.is_empty() || part.key.contains('\0') {
            findings.push(Finding::new(part.key_span.clone(), format!("a name in `{}` is empty", entry.key)));
        }
        if let Some(value) = crate::env::value(part, findings) {
            values.insert(part.key.to_string(), value);
        }
    }
    Some(values)
}

fn read_auth<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Auth> {
    const EXPECTED: &str = "a table with `bearer` or `basic`";
    let parts = expect::table(entry, usize::MAX, EXPECTED, findings)?;
    let mut auth = None;
    for part in parts {
        let Ok(key) = find(part, Table::Auth, findings) else { continue };
        templates.add(&part.node, if key.name() == "bearer" { &keys::BEARER } else { &keys::BASIC });
        let text = expect::filled_text(&part.node, &expect::quoted(part), findings).map(str::to_owned);
        let found = match key.name() {
            "bearer" => text.map(Auth::Bearer),
            _ => text.and_then(|text| read_basic(part, text, findings)),
        };
        if auth.is_some() {
            let finding = Finding::new(part.key_span.clone(), "`auth` has both `bearer` and `basic`");
            findings.push(finding.help("keep one of them"));
        }
        auth = auth.or(found);
    }
    if parts.is_empty() {
        let finding = Finding::new(entry.key_span.clone(), "`auth` is empty");
        findings.push(finding.help("add `bearer` or `basic`, or remove `auth`"));
    }
    auth
}

fn read_basic(part: &Entry<'_>, text: String, findings: &mut Findings) -> Option<Auth> {
    if !is_template(&text)
        && let Err(reason) = check_basic(&text)
    {
        findings.push(Finding::new(part.node.span.clone(), reason));
        return None;
    }
    Some(Auth::Basic(text))
}
