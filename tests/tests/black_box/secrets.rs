//! Secrets: what a job gets, and that their values are in no table, no log and no output.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use windlass_tests::{Outcome, Sandbox};

use crate::http_server::{Server, answer};

const TOKEN: &str = "t0k&n /wi+th\"ümlaut=";
const KEY: &str = "-----BEGIN KEY-----\nfirst-line-of-the-key\nab=\n-----END KEY-----";

/// The forms of the secrets in which nothing may show them. Those in base64 are the characters that do not depend on what
/// stands around them.
const FORMS: [&str; 12] = [
    "part-of-a-secret",
    TOKEN,
    "t0k%26n",
    "t0k\\u0026n",
    "dDBrJm4gL3dpK3RoIsO8bWxhdXQ",
    "QwayZuIC93aSt0aCLDvG1sYXV0",
    "0MGsmbiAvd2krdGgiw7xtbGF1dD",
    "T0K&N",
    "first-line-of-the-key",
    "Zmlyc3QtbGluZS1vZi10aGUta2V5",
    "printed-by-a-program",
    "rotated-printed",
];

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Outcome {
    let mut command = sandbox.command(arguments);
    command.env("PROD_TOKEN", TOKEN).env("UNUSED", "unused-secret").env("RUST_LOG", "trace");
    sandbox.start(command).wait()
}

/// Every file below the folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .flat_map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { vec![entry.path()] })
        .collect()
}

fn output(sandbox: &Sandbox, job: &str) -> Value {
    let text = sandbox.tables().jobs_of(1)[job].output.clone();
    serde_json::from_str(&text.expect("an output")).expect("an output is JSON")
}

const WORKFLOW: &str = r##"
name = "secrets"

[secrets]
TOKEN = { env = "PROD_TOKEN" }
KEY = { file = "key" }
PRINTED = { command = ["./print.sh"] }
LOGIN = { file = "login.json" }
UNUSED = {}

[jobs.use]
secrets = ["TOKEN", "KEY"]
env = { URL = "https://me:{{ secrets.PRINTED }}@example.org", LOUD = "{{ secrets.TOKEN | upper }}", LOGIN = "Basic {{ (secrets.LOGIN | fromjson).user.password }}", EXPECTED_TOKEN = "@TOKEN", EXPECTED_KEY = "@KEY" }
output = "json"
stdin = "{{ secrets.TOKEN }}"
run = '''
test "$(sha256sum)" = "$EXPECTED_TOKEN  -"
test "$(printf %s "$TOKEN" | sha256sum)" = "$EXPECTED_TOKEN  -"
test "$(printf %s "$KEY" | sha256sum)" = "$EXPECTED_KEY  -"
test -z "${PROD_TOKEN+set}${UNUSED+set}${PRINTED+set}"
cat /proc/[0-9]*/cmdline > command-lines 2> /dev/null || true
exec 3>&1 1>&2
echo "plain: $TOKEN"; echo "$KEY"; echo "$URL $LOUD"
echo "password: ${LOGIN#Basic }"
printf 'in two '; printf %.9s "$TOKEN"; sleep 0.2; printf '%s\n' "${TOKEN#?????????}"
for before in '' a ab; do printf %s "$before$TOKEN!" | base64; done
printf %s "$KEY" | base64 -w 20
printf %s "$TOKEN" | od -An -tx1 -v | tr -d '\n' | sed 's/ /%/g'; echo
cat forms
printf '\033[1m%.5s\033[0m%s\n' "$TOKEN" "${TOKEN#?????}"
echo done
cat json >&3
'''

[jobs.fail]
secrets = "TOKEN"
retry = { max_attempts = 2, delay = "1ms" }
run = 'echo "used $TOKEN"; echo "could not use $TOKEN" >&2; exit 3'

[jobs.without]
needs = "use"
output = "text"
run = 'echo "${PROD_TOKEN-none} ${UNUSED-none} ${TOKEN-none}"'

[on_failure.tell]
env = { ERROR = "{{ jobs.fail.error }}" }
output = "text"
run = 'echo "$ERROR"'
"##;

#[test]
fn a_job_gets_its_secrets_and_nothing_else_shows_them() {
    let sandbox = Sandbox::new();
    let hash = |text: &str| sha256(&sandbox, text);
    let workflow = WORKFLOW.replace("@TOKEN", &hash(TOKEN)).replace("@KEY", &hash(KEY));
    let file = sandbox.write("secrets.toml", workflow);
    let key = sandbox.write("key", format!("{KEY}\n"));
    let forms = "t0k%26n+%2Fwi%2Bth%22%C3%BCmlaut%3D\n\"t0k\\u0026n /wi+th\\\"\\u00fcmlaut=\"\n";
    let forms = sandbox.write("forms", forms);
    let json = r#"{"token": "t0k\u0026n \/wi+th\"ümlaut=", "key": "first-line-of-the-key", "n": 7}"#;
    let json = sandbox.write("json", json);
    let print = sandbox.write("print.sh", "#!/bin/sh\nprintf '%s\\n' printed-by-a-program\n");
    let login = r#"{"user": {"name": "me", "password": "part-of-a-secret"}}"#;
    let login = sandbox.write("login.json", login);
    for (path, mode) in [(&key, 0o600), (&login, 0o600), (&print, 0o700)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode can be changed");
    }
    let ran = run(&sandbox, &["run", &file]).exited(1);
    let jobs = sandbox.tables().jobs_of(1);
    assert_eq!(jobs["use"].status, "SUCCESSFUL", "{:?}", jobs["use"].last_error);
    assert_eq!(output(&sandbox, "use"), serde_json::json!({ "token": "***", "key": "***", "n": 7 }));
    assert_eq!(jobs["fail"].last_error.as_deref(), Some("exit code 3: could not use ***"));
    assert_eq!(
        (jobs["fail"].failures, output(&sandbox, "tell")),
        (2, "exit code 3: could not use ***".into())
    );
    assert_eq!(output(&sandbox, "without"), "none none none");
    let lines = sandbox.tables().log(jobs["use"].id);
    let lines: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    for line in ["plain: ***", "in two ***", "done", "password: ***", "*** ***", "\"***\""] {
        assert!(lines.contains(&line), "{line} is not in {lines:#?}");
    }

    let mut shown = vec![ran.stdout, ran.stderr];
    for arguments in [
        &["inspect", "1", "-o", "json"][..],
        &["inspect", "1/use", "-o", "json"],
        &["inspect", "1/fail"],
        &["logs", "1"],
        &["why", "1/fail"],
        &["jobs", "-o", "json"],
        &["runs", "-o", "json"],
        &["graph", "1"],
    ] {
        let outcome = run(&sandbox, arguments).exited(0);
        shown.extend([outcome.stdout, outcome.stderr]);
    }
    for file in files(sandbox.root()) {
        if ![&key, &login, &print, &forms, &json].contains(&&file.to_string_lossy().into_owned()) {
            let bytes = fs::read(&file).unwrap_or_default();
            shown.push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    for row in sandbox.tables().jobs() {
        shown.push(format!("{row:?}"));
    }
    for form in FORMS {
        for text in &shown {
            let at = text.find(form);
            assert_eq!(
                at.map(|at| text[at.saturating_sub(200)..].chars().take(300).collect::<String>()),
                None,
                "{form}"
            );
        }
    }
}

fn sha256(sandbox: &Sandbox, text: &str) -> String {
    let path = sandbox.write("to-hash", text);
    let output = std::process::Command::new("sha256sum").arg(&path).output().expect("sha256sum");
    fs::remove_file(path).expect("it was there");
    String::from_utf8_lossy(&output.stdout).split_whitespace().next().unwrap_or_default().to_owned()
}

#[test]
fn a_job_whose_secret_is_missing_fails_at_once_and_says_where_it_was_looked_for() {
    let sandbox = Sandbox::new();
    sandbox.write("open", "readable-by-all");
    let job = |name: &str| {
        format!(
            "[jobs.{name}]\nsecrets = '{name}'\nretry = {{ max_attempts = 3, delay = '1ms' }}\nrun = 'touch started'\n"
        )
    };
    let mut text =
        "name = 'missing'\n[secrets]\nNONE = {}\nSHORT = { env = 'SHORT_ONE' }\nOPEN = { file = 'open' }\n\
                    SLOW = { command = ['sleep', '60'] }\n\n"
            .to_owned();
    text.extend(["NONE", "SHORT", "OPEN"].map(job));
    let file = sandbox.write("missing.toml", text);
    let mut command = sandbox.command(&["run", &file]);
    command.env("SHORT_ONE", "hunter2");
    let ran = sandbox.start(command).wait().exited(1);
    let jobs = sandbox.tables().jobs_of(1);
    for (name, reason) in [
        ("NONE", "secret `NONE`: the worker has no variable `NONE`, and no CREDENTIALS_DIRECTORY"),
        ("SHORT", "secret `SHORT`: its value has fewer than 8 characters"),
        ("OPEN", "secret `OPEN`: others than its owner may read the file"),
    ] {
        let error = jobs[name].last_error.clone().unwrap_or_default();
        assert!(error.contains(reason) && !error.contains("hunter2"), "{error}");
        assert_eq!((jobs[name].status.as_str(), jobs[name].failures), ("FAILED", 1), "{name}");
        assert!(ran.stderr.contains(reason) || ran.stdout.contains(reason), "{}", ran.stderr);
    }
    assert!(!sandbox.path("started").exists());
}

#[test]
fn a_program_that_prints_a_secret_is_stopped_with_the_attempt() {
    let sandbox = Sandbox::new();
    let text = "name = 'slow'\nsecrets.S = { command = ['sh', '-c', 'sleep 600 & wait'] }\n\
                [jobs.a]\nsecrets = 'S'\ntimeout = '300ms'\nrun = 'true'\n";
    let file = sandbox.write("slow.toml", text);
    sandbox.run(&["run", &file]).exited(1);
    let error = sandbox.tables().jobs_of(1)["a"].last_error.clone().unwrap_or_default();
    assert_eq!(error, "secret `S`: its command was stopped, because the attempt was");
    assert_eq!(sandbox.leftovers(), []);
}

#[test]
fn a_job_reads_files_with_variables_below_its_environment() {
    let sandbox = Sandbox::new();
    sandbox.write(".env", "A=file\nB=\"from the\\nfile\"\nexport C='file' # comment\nD=$A\n");
    sandbox.write("later.env", "C=later\n");
    let text = "name = 'files'\nenv = { A = 'workflow' }\n[jobs.a]\nenv_files = ['.env', 'later.env', '?none.env']\n\
                output = 'text'\nrun = 'echo \"$A|$B|$C|$D\"'\n[jobs.missing]\nenv_files = 'none.env'\nrun = 'true'\n\
                [jobs.wrong]\nenv_files = 'wrong.env'\nrun = 'true'\n";
    sandbox.write("wrong.env", "A=1\nsecret stuff\n");
    let file = sandbox.write("files.toml", text);
    sandbox.run(&["run", &file]).exited(1);
    assert_eq!(output(&sandbox, "a"), "workflow|from the\nfile|later|$A");
    let jobs = sandbox.tables().jobs_of(1);
    let error = |name: &str| jobs[name].last_error.clone().unwrap_or_default();
    assert!(
        error("missing")
            .ends_with("/none.env of `env_files` does not exist; write \"?none.env\" if it may be missing")
    );
    assert!(
        error("wrong").ends_with("/wrong.env of `env_files`, line 2: it is not NAME=VALUE"),
        "{}",
        error("wrong")
    );
}

#[test]
fn a_request_may_have_a_secret_and_its_answer_does_not_show_it() {
    let sandbox = Sandbox::new();
    let server = Server::start(|request, stream| {
        let authorization = request.header("authorization").unwrap_or_default();
        let body = format!("{{\"path\": \"{}\", \"authorization\": \"{authorization}\"}}", request.path);
        let status = if request.path.starts_with("/refused") { "401 Unauthorized" } else { "200 OK" };
        answer(stream, status, "Content-Type: application/json\r\n", &body);
    });
    let text = format!(
        "name = 'request'\nsecrets.TOKEN = {{ env = 'PROD_TOKEN' }}\n\
         [jobs.basic]\nhttp = {{ url = '{0}', query.t = '{{{{ secrets.TOKEN }}}}', auth.basic = 'me:{{{{ secrets.TOKEN }}}}' }}\n\
         [jobs.refused]\nhttp = {{ url = '{1}', query.t = '{{{{ secrets.TOKEN }}}}' }}\n",
        server.url("/answered"),
        server.url("/refused"),
    );
    let file = sandbox.write("request.toml", text);
    run(&sandbox, &["run", &file]).exited(1);
    let jobs = sandbox.tables().jobs_of(1);
    let error = jobs["refused"].last_error.clone().unwrap_or_default();
    assert!(error.contains("401") && error.contains("t=***"), "{error}");
    let body = &output(&sandbox, "basic")["body"];
    assert_eq!(body["path"], "/answered?t=***");
    let authorization = body["authorization"].as_str().unwrap_or_default();
    assert!(authorization.starts_with("Basic ") && authorization.contains("***"), "{body}");
    assert!(server.requests().iter().any(|request| request.path.contains("t0k%26n%20%2Fwi")), "it was sent");
    for file in files(sandbox.root()) {
        let bytes = fs::read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(FORMS.iter().all(|form| !text.contains(form)), "{}", file.display());
    }
}
