//! Cycles among waiting jobs. They are found in memory, because a query would take much longer on large graphs.

use windlass_workflow::Graph;

use super::{Problem, SHOWN_MAX};
use windlass_db::error::Result;
use windlass_db::{Connection, all};

/// How many jobs of a cycle are named.
const NAMED_MAX: usize = 12;

/// A job and a job that it waits for.
struct Edge {
    run_id: Option<i64>,
    parent_id: i64,
    child_id: i64,
}

/// Finds the cycles among waiting jobs. Parents and children belong to the same run, so each run is a graph of its
/// own.
pub(super) fn find(connection: &mut dyn Connection) -> Result<Vec<Problem>> {
    let edges = all(
        connection,
        "SELECT child.run_id, edges.parent_id, edges.child_id FROM jobs AS child
         JOIN job_dependencies AS edges ON {by edges.child_id = child.id}
         JOIN jobs AS parent ON {by parent.id = edges.parent_id}
         WHERE child.status = 'BLOCKED' AND parent.status = 'BLOCKED'
         ORDER BY child.run_id",
        &[],
        |row| {
            Ok(Edge {
                run_id: row.optional_integer(0)?,
                parent_id: row.integer(1)?,
                child_id: row.integer(2)?,
            })
        },
    )?;
    let of_runs = edges.chunk_by(|one, other| one.run_id == other.run_id);
    Ok(of_runs.flat_map(cycles).take(SHOWN_MAX).map(problem).collect())
}

/// Finds the cycles of one run, as lists of job ids. Each job needs the next one, and the last needs the first.
fn cycles(edges: &[Edge]) -> Vec<Vec<i64>> {
    let mut ids: Vec<i64> = edges.iter().flat_map(|edge| [edge.parent_id, edge.child_id]).collect();
    ids.sort_unstable();
    ids.dedup();
    let index_of = |id: i64| ids.binary_search(&id).unwrap_or_default();
    let mut needs: Vec<Vec<usize>> = vec![Vec::new(); ids.len()];
    for edge in edges {
        needs[index_of(edge.child_id)].push(index_of(edge.parent_id));
    }
    let graph = Graph::from_needs(needs.iter().map(Vec::as_slice));
    let of_ids = |cycle: Vec<usize>| cycle.into_iter().map(|index| ids[index]).collect();
    graph.cycles(SHOWN_MAX).into_iter().map(of_ids).collect()
}

fn problem(cycle: Vec<i64>) -> Problem {
    let mut path: Vec<String> = cycle.iter().take(NAMED_MAX).map(|id| format!("j{id}")).collect();
    if cycle.len() > NAMED_MAX {
        path.push(format!("({} more)", cycle.len() - NAMED_MAX));
    }
    path.extend(cycle.first().map(|id| format!("j{id}")));
    Problem {
        check: RULE,
        detail: format!("these jobs need each other in a cycle, and none can start: {}", path.join(" -> ")),
        next_step: "`windlass cancel` their run, and submit the workflow without the cycle",
    }
}

/// The rule, like those of the other invariants.
const RULE: &str = "no job depends on itself, directly or through other jobs";
