//! `queue`, and the reasons of jobs that wait for a queue, a worker or a concurrency key.

use crate::support::Bench;

#[test]
fn rules_of_a_queue_are_set_shown_and_cleared() {
    let bench = Bench::new();
    let limit = |arguments: &[&str]| bench.windlass(&[&["queue", "limit", "mail"], arguments].concat());
    limit(&["--max-running", "4", "--rate", "100/1m"])
        .code(0)
        .says(&["mail: at most 4 at a time, at most 100 starts within 1m"]);
    limit(&["--fifo", "--no-rate"])
        .code(0)
        .says(&["mail: at most 4 at a time, one at a time, in order of arrival"])
        .tells(&["--max-running 4 has no effect", "windlass queue limit mail --no-max-running"]);
    let shown = bench.json(&["queue", "limit", "mail"]);
    assert_eq!(
        (&shown["max_running"], &shown["rate_jobs"], &shown["fifo"]),
        (&4.into(), &().into(), &true.into())
    );
    limit(&["--no-fifo", "--no-max-running"]).code(0).says(&["mail: no limits"]);
    limit(&["--max-running", "none"]).fails(2, &["--max-running"]);
    limit(&["--rate", "fast"]).fails(2, &["write jobs and an interval, for example 100/1m"]);
    limit(&["--fifo", "--no-fifo"]).fails(2, &["cannot be used with"]);
    limit(&["--fifo", "--max-running", "4"]).fails(2, &["cannot be used with"]);
    bench
        .windlass(&["queue", "limit", "absent"])
        .fails(5, &["`absent` has no jobs and no rules", "queue list"]);
    bench.windlass(&["queue", "limit", "", "--fifo"]).fails(2, &["the name of the queue is empty"]);
}

#[test]
fn a_new_queue_name_is_noted_with_the_most_similar_one() {
    let bench = Bench::new();
    bench
        .windlass(&["queue", "limit", "mail", "--fifo"])
        .code(0)
        .tells(&["the queue `mail` is new: it has no rules and no jobs"]);
    for known in ["mail", "default"] {
        let paused = bench.windlass(&["queue", "pause", known]);
        assert!(!paused.code(0).stderr.contains("is new"), "{paused:#?}");
    }
    bench.windlass(&["queue", "pause", "mial"]).code(0).tells(&[
        "the queue `mial` is new",
        "did you mean `mail`?",
        "is paused",
    ]);
}

#[test]
fn queue_without_a_verb_lists_the_queues() {
    let bench = Bench::new();
    bench.windlass(&["worker", "--until-idle"]).code(0);
    let nothing = bench.windlass(&["queue"]);
    nothing.code(0).tells(&["there are no queues"]);
    assert_eq!(nothing.stdout, "");
    let one_at_a_time = |key: &str| {
        let payload = r#"{"run": "true"}"#;
        let options = ["--queue", "mail", "--concurrency-key", key, "--concurrency-limit", "1"];
        bench.windlass(&[&["enqueue", "shell", "--payload", payload], options.as_slice()].concat()).code(0);
    };
    one_at_a_time("a");
    one_at_a_time("a");
    one_at_a_time("a");
    let listed = &bench.json(&["queue", "list"])[0];
    assert_eq!((&listed["pending"], &listed["waiting"]), (&1.into(), &2.into()), "{listed:#}");
    let list = bench.windlass(&["queue", "list"]);
    list.code(0).says(&["PENDING", "WAITING", "mail", "1", "2"]);
    assert_eq!(bench.windlass(&["queue"]).code(0).stdout, list.stdout);
}

#[test]
fn a_paused_queue_waits_until_it_is_resumed() {
    let bench = Bench::new();
    let job = bench.windlass(&["enqueue", "shell", "--payload", r#"{"run": "true"}"#, "--queue", "mail"]);
    let job = job.code(0).stdout.trim().to_owned();
    bench
        .windlass(&["queue", "pause", "mail"])
        .code(0)
        .tells(&["the queue `mail` is paused; no job is running", "windlass queue resume mail"]);
    bench.windlass(&["queue", "list"]).code(0).says(&["mail", "paused"]);
    bench.windlass(&["queue", "drain", "mail"]).code(0).tells(&["has no running jobs"]);
    bench.windlass(&["why", &job]).code(0).says(&["Its queue `mail` is paused", "queue resume mail"]);
    bench.windlass(&["queue", "resume", "mail"]).code(0).tells(&["is no longer paused"]);
    bench.windlass(&["queue", "resume", "mail"]).code(0).tells(&["was not paused"]);
    bench.windlass(&["worker", "--until-idle"]).code(0);
    bench.windlass(&["inspect", &job]).code(0).says(&["SUCCESSFUL"]);
}

#[test]
fn a_job_waits_for_a_worker_with_its_requirements() {
    let bench = Bench::new();
    let enqueue = |arguments: &[&str]| {
        let job = [&["enqueue", "shell", "--payload", r#"{"run": "true"}"#], arguments].concat();
        bench.windlass(&job).code(0).stdout.trim().to_owned()
    };
    let (gpu, new) = (enqueue(&["--requires", "gpu"]), enqueue(&["--code-version", "3"]));
    bench.windlass(&["worker", "--until-idle", "--code-version", "2"]).code(0);
    bench.windlass(&["inspect", &gpu]).code(0).says(&["PENDING"]);
    bench.windlass(&["inspect", &new]).code(0).says(&["PENDING"]);
    let able = ["worker", "--until-idle", "--code-version", "3", "--capability", "gpu,ssd"];
    bench.windlass(&able).code(0);
    bench.windlass(&["inspect", &gpu]).code(0).says(&["SUCCESSFUL"]);
    bench.windlass(&["inspect", &new]).code(0).says(&["SUCCESSFUL"]);
    for empty in ["", "gpu,", " gpu"] {
        bench.windlass(&["worker", "--until-idle", "--capability", empty]).fails(2, &["--capability"]);
    }
    bench.windlass(&["enqueue", "shell", "--requires", ""]).fails(2, &["--requires", "a name is empty"]);
    bench.windlass(&["enqueue", "shell", "--on-full", "skip"]).fails(2, &["--concurrency-key"]);
    bench
        .windlass(&["enqueue", "shell", "--on-full", "x"])
        .fails(2, &["[possible values: wait, skip, cancel_oldest]"]);
    for word in ["cancel_oldest", "cancel-oldest"] {
        let job = [
            "enqueue",
            "shell",
            "--payload",
            r#"{"run": "true"}"#,
            "--concurrency-key",
            "k",
            "--on-full",
            word,
        ];
        bench.windlass(&job).code(0);
    }
}

#[test]
fn why_names_the_holder_of_a_concurrency_key() {
    let bench = Bench::new();
    let enqueue = || {
        let job = ["enqueue", "shell", "--payload", r#"{"run": "true"}"#, "--concurrency-key", "tenant-7"];
        bench.windlass(&job).code(0).stdout.trim().to_owned()
    };
    let (first, second) = (enqueue(), enqueue());
    bench
        .windlass(&["why", &second])
        .code(0)
        .says(&[&format!("Its concurrency key `tenant-7` allows 1 job at a time; {first} has the slot.")]);
    bench.windlass(&["worker", "--until-idle"]).code(0);
    bench.windlass(&["inspect", &second]).code(0).says(&["SUCCESSFUL"]);
}

#[test]
fn a_waiting_run_says_once_why_it_waits() {
    let bench = Bench::new();
    bench.write(
        "train.toml",
        "name = \"train\"\n[jobs.fit]\nrun = \"true\"\nrequires = [\"gpu\"]\ncode_version = 3\n",
    );
    let run = bench.start(&["run", "train.toml", "--code-version", "3"]);
    run.wait_until_it_tells(&bench, "run 1 is waiting for job `fit`: ");
    bench.windlass(&["why", "1/fit"]).code(0).says(&[
        "has the required capabilities (gpu)",
        "`windlass resume 1 --capability gpu --code-version 3`",
    ]);
    let watch = bench.start(&["watch", "1"]);
    watch.wait_until_it_tells(&bench, "run 1 is waiting for job `fit`: ");
    bench.windlass(&["worker", "--until-idle", "--capability", "gpu", "--code-version", "3"]).code(0);
    let outcome = run.wait();
    outcome
        .code(0)
        .tells(&["has the required capabilities (gpu)", "resume 1 --capability gpu --code-version 3"]);
    assert_eq!(outcome.stderr.matches("run 1 is waiting").count(), 1, "{outcome:#?}");
    watch.wait().code(0);

    bench.write("mail.toml", "name = \"mail\"\n[jobs.send]\nrun = \"true\"\nqueue = \"mail\"\n");
    bench.windlass(&["queue", "limit", "mail", "--max-running", "0"]).code(0);
    let run = bench.start(&["run", "mail.toml"]);
    run.wait_until_it_tells(&bench, "has a limit of 0 running jobs");
    bench.windlass(&["queue", "pause", "mail"]).code(0);
    bench.windlass(&["queue", "limit", "mail", "--no-max-running"]).code(0);
    let stopped = bench.start(&["run", "mail.toml"]);
    stopped.wait_until_it_tells(&bench, "Its queue `mail` is paused");
    bench.windlass(&["queue", "resume", "mail"]).code(0);
    run.wait().code(0);
    stopped.wait().code(0);
}

#[test]
fn a_limit_of_zero_says_what_it_does() {
    let bench = Bench::new();
    let limit = ["queue", "limit", "mail", "--max-running", "0"];
    let told = ["no job of the queue `mail` starts", "windlass queue limit mail --no-max-running"];
    bench.windlass(&limit).code(0).tells(&told);
    let other = bench.windlass(&["queue", "limit", "mail", "--max-running", "1"]);
    assert!(!other.code(0).stderr.contains("no job of the queue"), "{other:#?}");
}

/// The run that has the slot is killed, and keeps it until it is resumed.
#[test]
fn a_run_waits_for_the_one_before_it_and_says_so() {
    let bench = Bench::new();
    let file = |on_full: &str| {
        format!(
            "name = 'deploy'\nconcurrency = {{ key = 'live', limit = 1, on_full = '{on_full}' }}\n\
             [jobs.go]\napproval = {{ prompt = 'Go?' }}\n[jobs.after]\nneeds = 'go'\nrun = 'true'\n"
        )
    };
    let deploy = bench.write("deploy.toml", &file("wait")).to_string_lossy().into_owned();
    let skipping = bench.write("skipping.toml", &file("skip")).to_string_lossy().into_owned();
    let first = bench.start(&["run", &deploy]);
    bench.wait_for_status("1/go", "WAITING");
    first.signal(rustix::process::Signal::KILL);
    first.wait();
    let second = bench.start(&["run", &deploy]);
    second.wait_until_it_tells(&bench, "run 2 waits for a slot of the concurrency key `live`");
    let waits =
        "waits for a slot of the concurrency key `live`, which allows 1 run at a time; run 1 has the slot.";
    bench.windlass(&["why", "2"]).code(0).says(&["PENDING (waits for a slot)", waits]);
    bench.windlass(&["why", "2/after"]).code(0).says(&["BLOCKED", waits]);
    let run = bench.json(&["inspect", "2"]);
    assert_eq!((&run["waits_for"], &run["concurrency_key"]), (&"slot".into(), &"live".into()));
    bench.windlass(&["cancel", "2/after"]).fails(2, &["cancel the run"]);
    let skipped = bench.windlass(&["run", &skipping]);
    skipped.code(3).tells(&["run 3 skipped"]);
    bench.windlass(&["why", "3"]).code(0).says(&["CANCELLED (skipped)", "had no free slot"]);
    let resumed = bench.start(&["resume", "1"]);
    bench.wait_for("the approval", || (bench.windlass(&["approve", "1", "go"]).code == 0).then_some(()));
    resumed.wait().code(0);
    bench.wait_for_status("2/go", "WAITING");
    bench.windlass(&["approve", "2", "go"]).code(0);
    second.wait().code(0);
}
