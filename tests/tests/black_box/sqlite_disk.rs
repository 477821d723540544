//! A full disk: exit code 6 and a clear message, and work continues when there is space again.
//!
//! The disk is a small tmpfs in its own mount namespace, which ends with the process. Each step of a script prints its
//! exit code to standard output.

use std::fs;
use std::process::Command;

use windlass_tests::binary::windlass;
use windlass_tests::{Outcome, Sandbox};

use crate::support::{assert_says, trivial_chain};

/// The exit code of the script if the machine does not allow mounts.
const CANNOT_MOUNT: i32 = 99;

const SMALL_DISK: &str = r#"
set -u
mount -t tmpfs -o size=3m none "$DISK" || exit 99
export WINDLASS_DB="$DISK/windlass.db"
step() {
    name=$1
    shift
    "$@" > "$DISK/../step.out"
    echo "$name: $?"
}
fill() { dd if=/dev/zero of="$DISK/filler" bs=4096 2> /dev/null || true; }
"#;

/// Runs the script on the small disk.
fn on_small_disk(sandbox: &Sandbox, file: &str, script: &str) -> Outcome {
    let disk = sandbox.path("disk");
    fs::create_dir(&disk).expect("a folder can be made");
    let script = format!("{SMALL_DISK}{script}");
    let arguments = ["--map-root-user", "--mount", "sh", "-c", &script];
    let mut command = sandbox.prepared(Command::new("unshare"), &arguments);
    command.env("DISK", &disk).env("FILE", file).env("WINDLASS", windlass());
    let outcome = sandbox.start(command).wait();
    assert_ne!(outcome.code, Some(CANNOT_MOUNT), "a tmpfs cannot be mounted here: {}", outcome.stderr);
    outcome
}

#[test]
fn a_disk_that_is_full_before() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 20);
    let outcome = on_small_disk(
        &sandbox,
        &file,
        r#"
step submit "$WINDLASS" submit "$FILE"
fill
step "run while full" "$WINDLASS" run "$FILE"
step "doctor while full" "$WINDLASS" doctor
rm "$DISK/filler"
step "resume with room" "$WINDLASS" resume
step check "$WINDLASS" db check
"$WINDLASS" runs -o jsonl > "$DISK/../runs.jsonl"
"#,
    );
    assert_says(&outcome, 0, &["disk", "full"]);
    assert_eq!(
        outcome.stdout,
        "submit: 0\nrun while full: 6\ndoctor while full: 6\nresume with room: 0\ncheck: 0\n"
    );
    let runs = sandbox.read("runs.jsonl");
    assert_eq!(runs.lines().count(), 1, "a run that was not accepted is there: {runs}");
    assert!(runs.contains("\"SUCCESSFUL\""), "{runs}");
}

/// The second job fills the disk in its first attempt. The third job writes much output.
const FILLS_THE_DISK: &str = r#"
name = "fills"
[jobs.before]
run = 'echo before >> "$DISK/../ran"'
[jobs.fills]
needs = ["before"]
run = '''
if [ "$WINDLASS_ATTEMPT" = 1 ]; then dd if=/dev/zero of="$DISK/filler" bs=4096 2> /dev/null || true; fi
echo fills >> "$DISK/../ran"
'''
[jobs.prints]
needs = ["fills"]
run = 'seq -f "a line that is long enough to need room %050.0f" 1 9000; echo prints >> "$DISK/../ran"'
"#;

/// Starts the run and waits until it reports the full disk.
const UNTIL_FULL: &str = r#"
"$WINDLASS" run "$FILE" > /dev/null &
engine=$!
until grep -q full "$DISK/../output/0.err"; do sleep 0.02; done
"#;

/// The state that must be there at the end.
const LOOK: &str = r#"
step check "$WINDLASS" db check
step logs "$WINDLASS" logs 1 prints
tail -n 1 "$DISK/../step.out"
"#;

fn assert_all_there(sandbox: &Sandbox, outcome: &Outcome, first_lines: &str) {
    assert_says(outcome, 0, &["disk", "full"]);
    let last_line = format!("a line that is long enough to need room {:050}", 9000);
    let expected = format!("{first_lines}check: 0\nlogs: 0\n{last_line}\n");
    assert_eq!(outcome.stdout, expected, "{}", outcome.stderr);
    let ran = sandbox.read("ran");
    assert_eq!(ran.lines().filter(|line| *line == "before").count(), 1, "{ran}");
    assert!(ran.ends_with("fills\nprints\n"), "{ran}");
}

#[test]
fn a_run_waits_for_room_and_goes_on() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("fills.toml", FILLS_THE_DISK);
    let doctor = "step doctor \"$WINDLASS\" doctor\ncut -c 1-13 < \"$DISK/../step.out\" | grep disk\n";
    let go_on = "rm \"$DISK/filler\"\nwait $engine\necho \"run: $?\"\n";
    let outcome = on_small_disk(&sandbox, &file, &format!("{UNTIL_FULL}{doctor}{go_on}{LOOK}"));
    assert_all_there(&sandbox, &outcome, "doctor: 1\nproblem  disk\nrun: 0\n");
}

#[test]
fn a_run_that_is_killed_on_a_full_disk_can_be_resumed() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("fills.toml", FILLS_THE_DISK);
    let resume = "rm \"$DISK/filler\"\nstep resume \"$WINDLASS\" resume\n";
    let script = format!("{UNTIL_FULL}\nkill -9 $engine\nwait $engine\necho \"run: $?\"\n{resume}{LOOK}");
    let outcome = on_small_disk(&sandbox, &file, &script);
    assert_all_there(&sandbox, &outcome, "run: 137\nresume: 0\n");
}
