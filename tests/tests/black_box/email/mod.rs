//! Promise: `examples/email` loses no mail, whatever is killed. A mail is sent twice only if the worker dies between the
//! answer of the mail server and the commit that records it: at most one for each of its threads. Each mail has the
//! idempotency key of its job as its Message-ID.

mod world;

use std::collections::BTreeSet;

use windlass_tests::seed::{round_rng, seed};
use windlass_tests::{Engine, eventually};
use world::{Hold, Language, World, example};

/// How many addresses are signed up in each round, in which the producer and the worker are killed once.
const ADDRESSES_A_ROUND: usize = 40;
const ROUNDS: usize = 3;

fn addresses(count: usize) -> BTreeSet<String> {
    (0..count).map(|number| format!("person{number}@example.org")).collect()
}

/// Each user has one mail, and each mail a user. One statement reads both, so a commit can't come between.
fn assert_users_have_mails(world: &World) {
    let differing = "SELECT (SELECT count(*) FROM users) - (SELECT count(*) FROM jobs WHERE kind = 'email')";
    assert_eq!(world.count(differing), 0, "users less mails");
}

/// Waits for a condition of the world, and starts the program again if it has ended.
fn wait_with(program: &mut Engine, what: &str, mut restart: impl FnMut() -> Engine, is: impl Fn() -> bool) {
    eventually(what, || {
        if !program.is_running() {
            *program = restart();
        }
        is().then_some(())
    });
}

fn users(world: &World) -> usize {
    world.count("SELECT count(*) FROM users") as usize
}

fn every_mail_is_sent_and_few_twice(language: Language) {
    let seed = seed("every_mail_is_sent_and_few_twice");
    let total = ADDRESSES_A_ROUND * ROUNDS;
    let world = World::new(language);
    let all = addresses(total);
    world.write_addresses(&all);
    let mut kills = 0;
    let mut answered = BTreeSet::new();
    for round in 0..ROUNDS {
        let mut rng = round_rng(seed, round as u64);
        let half = ADDRESSES_A_ROUND / 2;
        let until_users = round * ADDRESSES_A_ROUND + half + rng.usize(0..half);
        let until_mails = round * ADDRESSES_A_ROUND + 1 + rng.usize(0..half);
        let mut producer = world.signup(language);
        eventually("users", || (users(&world) >= until_users).then_some(()));
        producer.kill_9();
        let said = producer.stdout_so_far();
        answered.extend(said.lines().filter_map(|line| line.strip_prefix("signed up ")).map(str::to_owned));
        assert_users_have_mails(&world);
        let mut worker = world.mailer(language);
        wait_with(
            &mut worker,
            "mails",
            || {
                kills += 1;
                world.mailer(language)
            },
            || world.mail_count() >= until_mails,
        );
        worker.kill_9();
        kills += 1;
    }
    world.signup(language).wait().exited(0);
    let mut worker = world.mailer(language);
    let again = || world.mailer(language);
    wait_with(&mut worker, "the mails of all", again, || {
        world.mails().values().flatten().collect::<BTreeSet<_>>().len() == total
    });
    world.wait_for_all(total);
    drop(worker);

    let (mails, expected) = (world.mails(), world.expected_mails());
    assert!(
        answered.is_subset(&all) && answered.iter().all(|address| expected.values().any(|to| to == address))
    );
    assert_eq!(expected.values().cloned().collect::<BTreeSet<_>>(), all, "each user has a mail");
    assert_eq!(expected.len(), total, "and only one");
    assert_eq!(
        mails.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>(),
        "the Message-IDs that were sent are the idempotency keys of the jobs"
    );
    for (message_id, recipients) in &mails {
        assert!(recipients.iter().all(|to| *to == expected[message_id]), "{message_id}: {recipients:?}");
    }
    let repeated = world.mail_count() - total;
    let allowed = kills * language.threads();
    println!("{repeated} of {total} mails were sent twice; {kills} kills allow {allowed}");
    assert!(repeated <= allowed, "{repeated} mails were sent twice; {kills} kills allow {allowed}");
    assert_eq!(world.count("SELECT count(*) FROM sent_mails"), total as i64);
    world.sandbox.run(&["db", "check"]).exited(0);
}

#[test]
fn python_loses_no_mail_whatever_is_killed() {
    every_mail_is_sent_and_few_twice(Language::Python);
}

#[test]
fn rust_loses_no_mail_whatever_is_killed() {
    every_mail_is_sent_and_few_twice(Language::Rust);
}

/// Kills a producer at many moments. Without one transaction for both, some user would have no mail.
fn a_killed_producer_leaves_no_user_without_a_mail(language: Language) {
    const KILLS: usize = 12;
    let world = World::new(language);
    let mut rng = round_rng(seed("a_killed_producer"), 0);
    let all = addresses(KILLS * 8);
    world.write_addresses(&all);
    for _kill in 0..KILLS {
        let more = users(&world) + 1 + rng.usize(0..5);
        let mut producer = world.signup(language);
        eventually("more users, or the end", || {
            (users(&world) >= more || !producer.is_running()).then_some(())
        });
        producer.kill_9();
        assert_users_have_mails(&world);
    }
}

#[test]
fn python_writes_a_user_and_the_mail_together() {
    a_killed_producer_leaves_no_user_without_a_mail(Language::Python);
}

#[test]
fn rust_writes_a_user_and_the_mail_together() {
    a_killed_producer_leaves_no_user_without_a_mail(Language::Rust);
}

#[test]
fn an_address_that_is_known_gets_no_second_mail() {
    let world = World::new(Language::Python);
    for language in [Language::Python, Language::Rust, Language::Python] {
        let said = world.sign_up(language, &["ada@example.org"]);
        assert!(said.stdout.ends_with(" ada@example.org\n"), "{}", said.stdout);
    }
    assert_eq!(world.count("SELECT count(*) FROM jobs"), 1);
}

/// Kills the worker when the server has the mail and has not answered: the window in which a mail is sent twice.
fn a_mail_in_the_window_is_sent_twice_with_one_message_id(language: Language) {
    let world = World::new(language);
    world.sign_up(language, &["ada@example.org"]);
    world.hold(Hold::On);
    let mut worker = world.mailer(language);
    eventually("a mail without an answer", || (world.mail_count() == 1).then_some(()));
    worker.kill_9();
    world.hold(Hold::Off);
    let _next = world.mailer(language);
    world.wait_for_all(1);
    let mails = world.mails();
    assert_eq!(mails.values().collect::<Vec<_>>(), [&["ada@example.org"; 2]]);
    assert_eq!(mails.keys().collect::<Vec<_>>(), world.expected_mails().keys().collect::<Vec<_>>());
    assert_eq!(world.count("SELECT attempt FROM jobs"), 2);
}

#[test]
fn python_repeats_a_mail_in_the_window_with_its_message_id() {
    a_mail_in_the_window_is_sent_twice_with_one_message_id(Language::Python);
}

#[test]
fn rust_repeats_a_mail_in_the_window_with_its_message_id() {
    a_mail_in_the_window_is_sent_twice_with_one_message_id(Language::Rust);
}

/// The record ends the window, and not the end of the job that the worker writes later.
#[test]
fn rust_does_not_repeat_a_mail_whose_record_was_committed() {
    let world = World::new(Language::Rust);
    world.sign_up(Language::Rust, &["ada@example.org"]);
    let job = world.count("SELECT id FROM jobs");
    world.sandbox.database().refuse(job, "SUCCESSFUL");
    let mut worker = world.mailer(Language::Rust);
    eventually("the record", || (world.count("SELECT count(*) FROM sent_mails") == 1).then_some(()));
    worker.kill_9();
    world.sandbox.database().allow();
    // The worker may have tried to write the end before it died. As that was refused, it failed the job.
    if world.count("SELECT count(*) FROM jobs WHERE status = 'FAILED'") == 1 {
        world.sandbox.run(&["retry", &format!("j{job}")]).exited(0);
    }
    let _next = world.mailer(Language::Rust);
    world.wait_for_all(1);
    assert_eq!((world.mail_count(), world.count("SELECT attempt FROM jobs")), (1, 2));
}

fn a_refusal_for_now_is_tried_again_and_one_for_good_is_not(language: Language) {
    let world = World::new(language);
    world.sign_up(language, &["busy@example.org", "nobody@example.org"]);
    let _worker = world.mailer(language);
    let ended = "SELECT count(*) FROM jobs WHERE finished_at IS NOT NULL";
    eventually("both ends", || (world.count(ended) == 2).then_some(()));
    let jobs = world.sandbox.tables().jobs();
    let [busy, nobody] = [0, 1].map(|index| &jobs[index]);
    assert_eq!((busy.status.as_str(), busy.failures), ("SUCCESSFUL", 1), "{busy:?}");
    assert_eq!((nobody.status.as_str(), nobody.attempt), ("FAILED", 1), "{nobody:?}");
    let error = nobody.last_error.as_deref().unwrap_or_default();
    assert_eq!(error, "refused: 550 there is no such mailbox");
    assert_eq!(world.mails().into_values().collect::<Vec<_>>(), [["busy@example.org"]]);
}

#[test]
fn python_tries_again_what_may_succeed() {
    a_refusal_for_now_is_tried_again_and_one_for_good_is_not(Language::Python);
}

#[test]
fn rust_tries_again_what_may_succeed() {
    a_refusal_for_now_is_tried_again_and_one_for_good_is_not(Language::Rust);
}

#[test]
fn the_producers_of_both_languages_write_the_same_job() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let [python, rust] = ["signup.py", "connection.rs"].map(|name| words(&example(name)));
    for statement in [
        "INSERT INTO jobs (queue, kind, payload, max_attempts, retry) VALUES ('mail', 'email', ",
        "{\"delay_ms\": 1000, \"factor\": 2.0, \"max_delay_ms\": 600000, \"jitter\": 0.1}",
    ] {
        assert!(python.contains(statement) && rust.contains(statement), "{statement}");
    }
}
