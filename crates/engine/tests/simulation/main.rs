//! Random lives of the store: workers, a scheduler, a failure detector, people and other programs call it in any
//! order, under a clock and a chance that the test owns. An oracle says after each call what the tables must hold.
//!
//! Every run of the test takes the fixed seeds and a fresh one, which is printed. `WINDLASS_SEED=7` repeats one alone,
//! `WINDLASS_SIMULATION_STEPS` and `WINDLASS_SIMULATION_SEEDS` (fresh ones) make it longer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub, missing_docs)]

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

use world::World;

const STEPS: u64 = 400;
const FIXED_SEEDS: u64 = 12;
const FRESH_SEEDS: u64 = 1;
/// Steps between two comparisons of what only grows.
const CHECK_EVERY: u64 = 20;

#[test]
fn everything_ends_as_the_oracle_says_in_any_order() {
    let steps = number_from("WINDLASS_SIMULATION_STEPS").unwrap_or(STEPS);
    let fresh = number_from("WINDLASS_SIMULATION_SEEDS").unwrap_or(FRESH_SEEDS);
    let seeds: Vec<u64> = match number_from("WINDLASS_SEED") {
        Some(seed) => vec![seed],
        None => (0..FIXED_SEEDS).chain((0..fresh).map(|_fresh| fastrand::u64(..))).collect(),
    };
    for seed in seeds {
        println!("WINDLASS_SEED={seed} WINDLASS_SIMULATION_STEPS={steps}");
        live(seed, steps);
    }
}

fn live(seed: u64, steps: u64) {
    let mut world = World::new(seed);
    for step in 0..steps {
        world.step();
        if step % CHECK_EVERY == 0 {
            world.check();
        }
    }
    world.run_out();
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a whole number, not {text:?}")))
}
