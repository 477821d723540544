//! Random simulations of the store: workers, a scheduler, a failure detector, people and other programs call it in
//! any order. The test controls the clock and all chance. After each call an oracle says what the tables must hold.
//!
//! The fixed seeds are the same each time. Another test takes a new seed and prints it; `WINDLASS_SEED=7` repeats a
//! seed. `WINDLASS_SIMULATION_STEPS` makes every simulation longer, and `WINDLASS_SIMULATION_SEEDS` sets the number
//! of new seeds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub, missing_docs)]

mod detector;
mod faults;
mod oracle;
mod outside;
mod person;
mod results;
mod rules;
mod scheduler;
#[path = "../support/mod.rs"]
mod support;
mod worker;
mod world;

use windlass_test_database::DatabaseKind;
use world::World;

const STEPS: u64 = 400;
/// Fewer on PostgreSQL, because a server takes longer for each call.
const FIXED_SEEDS_SQLITE: u64 = 16;
const FIXED_SEEDS_POSTGRES: u64 = 3;
/// Steps between two comparisons of the rows that are only ever added.
const CHECK_EVERY: u64 = 20;

#[test]
fn random_simulations_end_as_the_oracle_says() {
    let seeds = match windlass_test_database::chosen_kind() {
        DatabaseKind::Sqlite => FIXED_SEEDS_SQLITE,
        DatabaseKind::Postgres => FIXED_SEEDS_POSTGRES,
    };
    (0..seeds).for_each(simulate);
}

#[test]
fn a_simulation_with_a_new_seed_ends_as_the_oracle_says() {
    let fresh = number_from("WINDLASS_SIMULATION_SEEDS").unwrap_or(1);
    match number_from("WINDLASS_SEED") {
        Some(seed) => simulate(seed),
        None => (0..fresh).for_each(|_seed| simulate(fastrand::u64(..))),
    }
}

fn simulate(seed: u64) {
    let steps = number_from("WINDLASS_SIMULATION_STEPS").unwrap_or(STEPS);
    println!("WINDLASS_SEED={seed} WINDLASS_SIMULATION_STEPS={steps}");
    let mut world = World::new(seed);
    for step in 0..steps {
        world.step();
        if step % CHECK_EVERY == 0 {
            world.check();
        }
    }
    world.run_all_jobs();
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a whole number, not {text:?}")))
}

/// A row that is changed secretly is noticed.
#[test]
#[should_panic(expected = "(state, attempt, failures, interruptions, owner, priority)")]
fn the_oracle_notices_a_changed_row() {
    let mut world = World::new(1);
    (0..100).for_each(|_step| world.step());
    world.sql().execute("UPDATE jobs SET failures = failures + 1 WHERE id = (SELECT max(id) FROM jobs)");
    world.step();
}
