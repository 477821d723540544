//! `notify`: listing and trying the targets of notifications, and their keys in the configuration.

use std::fs;

use crate::support::{BAD, Bench, GOOD};

#[test]
fn a_target_is_tried() {
    let bench = Bench::new();
    bench.windlass(&["notify", "--test"]).fails(2, &["there is no target to try", "[notify.NAME]"]);
    bench.write(
        "windlass.toml",
        "[notify.file]\ncommand = ['sh', '-c', 'cat > message; echo here >&2']\n\
         [notify.broken]\ncommand = ['false']\n[notify.late]\ncommand = ['sleep', '1000']\ntimeout = '1s'\n\
         [notify.nobody]\nurl = 'http://127.0.0.1:1/hook?token=sesame'\n",
    );
    let tried = bench.windlass(&["notify", "file", "--test"]);
    tried.code(0).says(&["file: delivered in ", "exit code 0"]).tells(&["here"]);
    let message: serde_json::Value =
        serde_json::from_slice(&fs::read(bench.path("message")).unwrap()).unwrap();
    assert_eq!((&message["type"], &message["data"]["target"]), (&"test".into(), &"file".into()));
    let all = bench.windlass(&["notify", "--test"]);
    all.code(1).says(&[
        "file: delivered",
        "broken: failed in ",
        "exit code 1",
        "late: failed",
        "took longer than its timeout",
        "nobody: failed",
        "no answer",
    ]);
    assert!(!format!("{all:?}").contains("sesame"), "{all:#?}");
    let json = bench.json(&["notify", "broken", "--test"]);
    assert_eq!((&json[0]["target"], &json[0]["delivered"]), (&"broken".into(), &false.into()));
    bench
        .windlass(&["notify", "oops", "--test"])
        .fails(5, &["no target `oops`", "file, broken, late, nobody"]);
}

#[test]
fn targets_and_notifications_are_listed() {
    let bench = Bench::new();
    bench.write("bad.toml", BAD);
    bench.windlass(&["run", "bad.toml"]).code(1);
    bench.windlass(&["notify"]).code(0).says(&["no targets: add [notify.NAME]"]);
    bench.write("windlass.toml", "[notify.ops]\ncommand = ['false']\non = ['run_failed']\n");
    bench.windlass(&["notify"]).code(0).says(&["ops", "command", "no service has it yet", "run_failed"]);
    let service = bench.start(&["serve"]);
    service.wait_until_it_tells(&bench, " serves ");
    bench.windlass(&["run", "bad.toml"]).code(1);
    let listed = bench.wait_for("a failed delivery", || {
        let listed = bench.json(&["notify"]);
        listed["notifications"][0]["last_error"].is_string().then_some(listed)
    });
    assert_eq!(listed["targets"][0]["active"], true);
    let note = &listed["notifications"][0];
    assert_eq!(
        (&note["run_id"], &note["event"], &note["status"]),
        (&2.into(), &"run_failed".into(), &"PENDING".into())
    );
    bench.windlass(&["notify", "ops"]).code(0).says(&["ops", "active", "run_failed", "2 bad", "exit code 1"]);
    bench.windlass(&["notify", "oops"]).fails(5, &["no target `oops`", "the targets are ops"]);
    service.signal(rustix::process::Signal::TERM);
    service.wait().code(0);
    // Without its target in any configuration, the notification waits, and doctor says so.
    bench.write("windlass.toml", "");
    let next = bench.start(&["serve"]);
    next.wait_until_it_tells(&bench, " serves ");
    bench.windlass(&["notify"]).code(0).says(&["no service has it", "PENDING"]);
    bench.windlass(&["doctor"]).says(&[
        "warning",
        "notifications",
        "1 notification waits for the target `ops`",
    ]);
    next.signal(rustix::process::Signal::TERM);
    next.wait().code(0);
}

#[test]
fn the_example_of_a_configuration_is_valid() {
    let bench = Bench::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/windlass.toml");
    let checked = bench.windlass(&["serve", "--check", "--config", example, "--workflows", "."]);
    checked.code(0).says(&["notify       chat, mail\n"]);
}

#[test]
fn the_keys_of_a_target_are_checked() {
    let bench = Bench::new();
    let cases = [
        ("[notify.a]\n", "the target `a` needs either `url` or `command`"),
        ("[notify.a]\nurl = 'https://x/'\ncommand = ['y']\n", "needs either `url` or `command`"),
        ("[notify.a]\nurl = 'ftp://x/'\n", "`url` of the target `a` can't be used"),
        ("[notify.a]\ncommand = []\n", "needs either `url` or `command`"),
        ("[notify.a]\nulr = 'https://x/'\n", "did you mean `url`?"),
        ("[notify.a]\nurl = 'https://x/'\non = ['failed']\n", "must be one of run_failed, run_cancelled"),
        ("[notify.a]\nurl = 'https://x/'\nworkflows = ['a*b']\n", "`*` is allowed at the end only"),
        ("[notify.a]\nurl = 'https://x/'\ntimeout = '1h'\n", "must be between 1s and 5m"),
        ("[notify]\nurl = 'https://x/'\n", "must be a table"),
        ("[notify.a]\nurl = 'https://x/'\nsecret = 'whsec_x'\n", "`secret` must be a table"),
        ("[notify.a]\ncommand = ['y']\nsecret = { file = 'k' }\n", "has a `secret` and no `url`"),
        (
            "[notify.a]\nurl = 'https://x/'\nsecret = { file = 'no.secret' }\n",
            "the secret of the target `a` can't be used",
        ),
        ("[notify.a]\nurl = 'https://x/'\nsecret = { env = 'SECRET' }\n", "must begin with WINDLASS_"),
    ];
    for (config, expected) in cases {
        bench.write("windlass.toml", config);
        let refused = bench.windlass(&["serve", "--check"]);
        refused.code(2).tells(&[expected]);
    }
    bench.write("windlass.toml", "[notify.a]\nurl = 'https://x/'\n[notify.b]\ncommand = ['true']\n");
    bench.windlass(&["serve", "--check"]).code(0).says(&["notify       a, b\n"]);
}

#[test]
fn the_keys_of_a_hook_are_checked() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    for (name, secret, mode) in [
        ("good", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", 0o600),
        ("open", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", 0o644),
        ("sesame", "open-sesame-open-sesame", 0o600),
        ("short", "whsec_sesameAA", 0o600),
    ] {
        bench.write(name, secret);
        fs::set_permissions(bench.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let cases = [
        ("[hooks.a]\n", "the hook `a` needs `event` and `secret`"),
        ("[hooks.a]\nevent = 'push'\n", "the hook `a` needs `event` and `secret`"),
        ("[hooks.a]\nevent = 'a b'\nsecret = { file = 'good' }\n", "`event` can't be used"),
        ("[hooks.a]\nevent = 'push'\nsecret = {}\n", "a secret has one source"),
        (
            "[hooks.a]\nevent = 'push'\nsecret = { file = 'good', env = 'WINDLASS_X' }\n",
            "a secret has one source",
        ),
        ("[hooks.a]\nevent = 'push'\nsecret = { env = 'HOME' }\n", "must begin with WINDLASS_"),
        (
            "[hooks.a]\nevent = 'push'\nsecret = { env = 'WINDLASS_X' }\n",
            "this process has no variable `WINDLASS_X`",
        ),
        ("[hooks.a]\nevent = 'push'\nsecret = { file = 'open' }\n", "run chmod 600 on it"),
        ("[hooks.a]\nevent = 'push'\nsecret = { file = 'sesame' }\n", "it does not begin with whsec_"),
        ("[hooks.a]\nevent = 'push'\nsecret = { file = 'short' }\n", "at least 24 are needed"),
        ("[hooks.a]\nevent = 'push'\nsecret = { command = ['false'] }\n", "its command `false` failed"),
        ("[hooks.a]\nevent = 'push'\nform = 'stripe'\nsecret = { file = 'good' }\n", "\"github\""),
        ("[hooks.'a/b']\nevent = 'push'\nsecret = { file = 'good' }\n", "can't be the name of a hook"),
    ];
    for (config, expected) in cases {
        bench.write("windlass.toml", config);
        let refused = bench.windlass(&["serve", "--check"]);
        refused.code(2).tells(&[expected]);
        assert!(!format!("{refused:?}").contains("open-sesame-"), "{refused:#?}");
    }
    // A verb that needs no secret does not look for it.
    bench.write("windlass.toml", "[hooks.a]\nevent = 'push'\nsecret = { file = 'nothing' }\n");
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    let secrets = "secret = { file = 'good' }\nformer_secret = { command = ['cat', 'good'] }\n";
    bench.write("windlass.toml", &format!("[hooks.a]\nevent = 'push'\n{secrets}"));
    bench.windlass(&["serve", "--check"]).code(0).says(&["hooks        a\n"]);
}
