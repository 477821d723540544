//! Promise: no job starts before all its parents have succeeded.

use serde_json::json;
use windlass_tests::graphs::Graph;
use windlass_tests::seed::{round_rng, seed};
use windlass_tests::{Sandbox, audit, claims, order};

use crate::support::{assert_none, submit};

const RANDOM_GRAPHS: u64 = 50;

fn no_work(graph: &Graph, name: &str) -> String {
    graph.workflow(name, |_| json!({ "command": ["true"] }))
}

/// Proves the order of all jobs of a sandbox from their times and from the record of changes.
fn assert_order(sandbox: &Sandbox, edges: usize) {
    let tables = sandbox.tables();
    let (jobs, dependencies) = (tables.jobs(), tables.dependencies());
    assert_eq!(dependencies.len(), edges, "dependencies in the table");
    let changes = audit::changes(&tables);
    assert_none("lost", &claims::lost(&jobs, &changes));
    assert_none("order by times", &order::time_problems(&jobs, &dependencies));
    assert_none("order by claims", &order::claim_problems(&changes, &dependencies));
    assert_none("owners", &claims::owner_problems(&changes));
}

fn run_in_order(graph: &Graph) {
    let sandbox = Sandbox::new();
    let file = sandbox.write("graph.json", no_work(graph, "graph"));
    submit(&sandbox, &file);
    audit::install(sandbox.database());
    sandbox.run(&["resume", "--threads", "4"]).exited(0);
    assert_order(&sandbox, graph.edges());
}

#[test]
fn a_chain_of_40() {
    run_in_order(&Graph::chain(40));
}

#[test]
fn a_graph_of_2000_jobs_and_6000_edges() {
    let seed = seed("a_graph_of_2000_jobs_and_6000_edges");
    run_in_order(&Graph::random(&mut round_rng(seed, 0), 2_000, 6_000));
}

#[test]
fn fifty_random_graphs() {
    let seed = seed("fifty_random_graphs");
    let sandbox = Sandbox::new();
    let mut edges = 0;
    for round in 0..RANDOM_GRAPHS {
        let mut rng = round_rng(seed, round);
        let jobs = rng.usize(1..40);
        let wanted = rng.usize(0..jobs * 3);
        let graph = Graph::random(&mut rng, jobs, wanted);
        edges += graph.edges();
        let name = format!("random-{round}");
        submit(&sandbox, &sandbox.write(&format!("{name}.json"), no_work(&graph, &name)));
    }
    audit::install(sandbox.database());
    sandbox.run(&["worker", "--until-idle", "--threads", "4"]).exited(0);
    assert_order(&sandbox, edges);
    let ended: i64 = sandbox.tables().value("SELECT count(*) FROM runs WHERE status = 'SUCCESSFUL'");
    assert_eq!(u64::try_from(ended), Ok(RANDOM_GRAPHS));
}
