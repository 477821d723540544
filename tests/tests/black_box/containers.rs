//! Jobs in containers, with a real container program and an image that is made here.

use std::path::Path;
use std::process::Command;

use windlass_tests::{Sandbox, eventually};

/// A container program whose images and containers are in a folder of the test. The limits are those that a machine without
/// many rights can set.
const PROGRAM: &str = r#"#!/bin/sh
state="$(dirname "$0")/containers"
verb=$1; shift
test "$verb" = run && set -- --ulimit nofile=1000:1000 --ulimit nproc=1000:1000 --network=host "$@"
exec podman --root "$state/root" --runroot "$state/run" --storage-driver vfs --runtime runc "$verb" "$@"
"#;

struct Containers {
    sandbox: Sandbox,
}

impl Containers {
    fn new() -> Containers {
        let sandbox = Sandbox::new();
        let program = sandbox.write("podman-of-test", PROGRAM);
        execute(Command::new("chmod").args(["+x", &program]));
        make_image(&sandbox);
        sandbox.write("windlass.toml", format!("[container]\nprogram = {program:?}\n"));
        Containers { sandbox }
    }

    /// Calls the container program.
    fn call(&self, words: &[&str]) -> String {
        execute(Command::new(self.sandbox.path("podman-of-test")).args(words))
    }

    /// The labels with the marks of the containers that exist.
    fn marks(&self) -> Vec<String> {
        let labels = self.call(&["ps", "--all", "--format", "{{ index .Labels \"windlass.mark\" }}"]);
        labels.lines().map(str::to_owned).collect()
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        let program = self.sandbox.path("podman-of-test");
        let _all_gone = Command::new(&program).args(["kill", "--all"]).output();
        let _all_gone = Command::new(&program).args(["rm", "--all", "--force"]).output();
    }
}

/// Makes the image `mini:1`, which has a shell.
fn make_image(sandbox: &Sandbox) {
    let root = sandbox.path("image/bin");
    std::fs::create_dir_all(&root).expect("the folder of the image is made");
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    std::fs::copy(busybox.expect("busybox-static is installed"), root.join("busybox")).expect("it is copied");
    for name in ["sh", "cat", "echo", "sleep", "touch", "pwd"] {
        std::os::unix::fs::symlink("busybox", root.join(name)).expect("it is linked");
    }
    let archive = sandbox.path("image.tar");
    execute(Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(sandbox.path("image")).arg("."));
    execute(Command::new(sandbox.path("podman-of-test")).arg("import").arg(&archive).arg("mini:1"));
}

/// Executes a command, and returns what it prints.
fn execute(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_container_has_the_folder_the_variables_and_the_input_of_its_job() {
    let containers = Containers::new();
    let sandbox = &containers.sandbox;
    std::fs::create_dir_all(sandbox.path("data")).expect("the folder is made");
    sandbox.write("data/x", "from the volume\n");
    let file = sandbox.write(
        "c.toml",
        r#"
name = "c"
[params]
tag = { default = "1" }
[jobs.hello]
container = { image = "mini:{{ params.tag }}", volumes = ["./data:/data:ro"], pull = "never" }
run = 'cat /data/x; cat; echo "$GREETING in $(pwd), ${#TRACEPARENT}"; echo 7 > "$WINDLASS_OUTPUT"; touch made; ! touch /data/no 2> /dev/null'
env = { GREETING = "hello" }
stdin = "typed\n"
[jobs.next]
needs = ["hello"]
container = { image = "mini:1", pull = "never" }
command = ["echo", "got {{ jobs.hello.output }}"]
output = "text"
"#,
    );
    sandbox.run(&["run", &file]).exited(0);
    let jobs = sandbox.tables().jobs_of(1);
    let lines: Vec<String> =
        sandbox.tables().log(jobs["hello"].id).into_iter().map(|line| line.text).collect();
    assert_eq!(lines, ["from the volume", "typed", "hello in /work, 55"]);
    assert_eq!(jobs["next"].output.as_deref(), Some("\"got 7\""));
    assert!(sandbox.path("made").exists(), "/work is the folder of the job");
    assert_eq!(containers.marks(), Vec::<String>::new());
}

#[test]
fn no_container_of_an_earlier_attempt_is_left_when_the_next_one_begins() {
    let containers = Containers::new();
    let sandbox = &containers.sandbox;
    let file = sandbox.write(
        "killed.toml",
        "name = 'killed'\n[jobs.a]\ncontainer = { image = 'mini:1', pull = 'never' }\n\
         run = 'echo $WINDLASS_ATTEMPT; test \"$WINDLASS_ATTEMPT\" -gt 1 || sleep 1000'\n",
    );
    let mut engine = sandbox.spawn(&["run", &file]);
    let mark = eventually("the container runs", || containers.marks().pop());
    engine.kill_9();
    // The container of a client that can't be found by its process: only the label says whose it is.
    let label = format!("windlass.mark={mark}");
    containers.call(&["run", "--detach", "--label", &label, "mini:1", "sleep", "1000"]);
    sandbox.run(&["resume", "1"]).exited(0);
    assert_eq!(containers.marks(), Vec::<String>::new());
    assert_eq!(sandbox.tables().jobs_of(1)["a"].attempt, 2);
}

#[test]
fn a_container_ends_with_the_timeout_of_its_attempt() {
    let containers = Containers::new();
    let file = containers.sandbox.write(
        "late.toml",
        "name = 'late'\n[jobs.a]\ncontainer = { image = 'mini:1', pull = 'never' }\ntimeout = '1s'\nrun = 'sleep 1000'\n",
    );
    containers.sandbox.run(&["run", &file]).exited(1);
    assert_eq!(containers.marks(), Vec::<String>::new());
}

#[test]
fn an_attempt_does_not_start_while_containers_of_earlier_ones_can_not_be_removed() {
    let containers = Containers::new();
    let sandbox = &containers.sandbox;
    // `ps` fails after the first attempt.
    let program = sandbox.path("podman-of-test");
    let broken = format!("#!/bin/sh\ntest \"$1\" = ps && exit 1\nexec {} \"$@\"\n", program.display());
    sandbox.write("broken", broken);
    execute(Command::new("chmod").arg("+x").arg(sandbox.path("broken")));
    sandbox.write("windlass.toml", "[container]\nprogram = './broken'\n");
    let file = sandbox.write(
        "broken.toml",
        "name = 'broken'\n[jobs.a]\ncontainer = { image = 'mini:1', pull = 'never' }\nretry = 2\n\
         run = 'echo began; exit 3'\n",
    );
    sandbox.run(&["run", &file]).exited(1);
    let job = &sandbox.tables().jobs_of(1)["a"];
    let error = job.last_error.as_deref().unwrap_or_default();
    let expected = format!(
        "a container of an earlier attempt may still be there: `{} ps` failed",
        sandbox.path("broken").display()
    );
    assert!(error.starts_with(&expected), "{error}");
    let log = sandbox.tables().log(job.id);
    assert_eq!(log.iter().filter(|line| line.text == "began").count(), 1, "{log:?}");
}

#[test]
fn a_missing_container_program_is_named_with_the_next_step() {
    let sandbox = Sandbox::new();
    sandbox.write("windlass.toml", "[container]\nprogram = 'no-such-program'\n");
    let file = sandbox
        .write("m.toml", "name = 'm'\n[jobs.a]\ncontainer = { image = 'mini:1' }\nrun = 'true'\nretry = 3\n");
    sandbox.run(&["run", &file]).exited(1);
    let error = sandbox.tables().jobs_of(1)["a"].last_error.clone().unwrap_or_default();
    assert_eq!(
        error,
        "the container program `no-such-program` was not found: install it, or name another one as `program` in [container] of \
         windlass.toml"
    );
}
