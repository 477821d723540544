//! The graphs that are measured.

use windlass_workflow::Workflow;

/// Jobs that each need the one before.
pub(crate) fn chain(links: usize) -> Workflow {
    Workflow::graph("chain", (0..links).map(|link| link.checked_sub(1).into_iter().collect()))
}

/// One job, then `width` of them, then one that needs all of these.
pub(crate) fn fan(width: usize) -> Workflow {
    let first = std::iter::once(Vec::new());
    let middle = (0..width).map(|_job| vec![0]);
    let last = std::iter::once((1..=width).collect());
    Workflow::graph("fan", first.chain(middle).chain(last))
}

/// Layers of `width` jobs. Each job needs three jobs of the layer before, or all if it has fewer.
pub(crate) fn layers(layers: usize, width: usize) -> Workflow {
    let needs = (0..layers).flat_map(|layer| {
        (0..width).map(move |place| {
            let Some(before) = layer.checked_sub(1) else { return Vec::new() };
            let mut needs: Vec<usize> =
                (0..width.min(3)).map(|step| before * width + (place + step) % width).collect();
            needs.sort_unstable();
            needs
        })
    });
    Workflow::graph("layers", needs)
}

/// Jobs that need nothing.
pub(crate) fn wide(jobs: usize) -> Workflow {
    Workflow::graph("wide", (0..jobs).map(|_job| Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(workflow: &Workflow) -> Vec<Vec<usize>> {
        workflow.jobs.iter().map(|job| job.needs.clone()).collect()
    }

    #[test]
    fn each_graph_has_the_edges_of_its_form() {
        assert_eq!(needs(&chain(3)), [vec![], vec![0], vec![1]]);
        assert_eq!(needs(&fan(2)), [vec![], vec![0], vec![0], vec![1, 2]]);
        assert_eq!(needs(&wide(2)), [vec![0; 0], vec![]]);
        let three = layers(2, 4);
        assert_eq!(needs(&three)[..4], vec![Vec::<usize>::new(); 4]);
        assert_eq!(needs(&three)[4..], [vec![0, 1, 2], vec![1, 2, 3], vec![0, 2, 3], vec![0, 1, 3]]);
        assert_eq!(needs(&layers(2, 2))[2..], [vec![0, 1], vec![0, 1]], "no more than there are");
    }
}
