//! Properties of random graphs and random texts. Each test prints its seed, and `WINDLASS_TEST_SEED` sets it.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use windlass_workflow::draw::Drawing;
use windlass_workflow::{Graph, Source, Workflow, params, parse, template};

fn check<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let given = std::env::var("WINDLASS_TEST_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.as_secs()
    });
    println!("WINDLASS_TEST_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    if let Err(error) = TestRunner::new_with_rng(config, random).run(&strategy, test) {
        panic!("WINDLASS_TEST_SEED={seed}: {error}");
    }
}

/// A graph without cycles, and an order in which the file has the jobs.
fn random_graph() -> impl Strategy<Value = (Vec<Vec<usize>>, Vec<usize>)> {
    (1_usize..40).prop_flat_map(|count| {
        let needs = proptest::collection::vec(proptest::collection::btree_set(0..count, 0..5), count);
        let order = Just((0..count).collect::<Vec<usize>>()).prop_shuffle();
        (needs, order).prop_map(|(needs, order)| {
            let earlier = |(job, needs): (usize, std::collections::BTreeSet<usize>)| {
                needs.into_iter().filter(|need| *need < job).collect()
            };
            (needs.into_iter().enumerate().map(earlier).collect(), order)
        })
    })
}

fn toml_of(needs: &[Vec<usize>], order: &[usize]) -> String {
    let job = |job: &usize| {
        let names: Vec<String> = needs[*job].iter().map(|need| format!("'j{need}'")).collect();
        format!("[jobs.j{job}]\nrun = 'x'\nneeds = [{}]\n", names.join(", "))
    };
    order.iter().map(job).collect()
}

fn parsed(path: &str, text: &str) -> Workflow {
    parse(&Source::new(path, text.into()).unwrap()).unwrap_or_else(|report| panic!("{report}"))
}

#[test]
fn every_graph_can_be_stored_and_read_back() {
    check(200, random_graph(), |(needs, order)| {
        let workflow = parsed("a.toml", &toml_of(&needs, &order));
        let again = Workflow::from_json(&workflow.to_json()).unwrap();
        prop_assert_eq!(again.hash(), workflow.hash());
        prop_assert_eq!(again, workflow);
        Ok(())
    });
}

#[test]
fn layers_and_ancestors_agree_with_the_needs() {
    check(200, random_graph(), |(needs, order)| {
        let workflow = parsed("a.toml", &toml_of(&needs, &order));
        let graph = Graph::new(&workflow);
        let layers = graph.layers();
        let mut layer_of = vec![usize::MAX; workflow.jobs.len()];
        for (number, layer) in layers.iter().enumerate() {
            for job in layer {
                prop_assert_eq!(layer_of[*job], usize::MAX, "a job is in one layer");
                layer_of[*job] = number;
            }
        }
        for (index, job) in workflow.jobs.iter().enumerate() {
            let expected = job.needs.iter().map(|need| layer_of[*need] + 1).max().unwrap_or(0);
            prop_assert_eq!(layer_of[index], expected);
            let ancestors = graph.ancestors(index);
            for need in &job.needs {
                prop_assert!(ancestors.contains(need));
                prop_assert!(graph.ancestors(*need).iter().all(|far| ancestors.contains(far)));
                prop_assert!(graph.descendants(*need).contains(&index));
            }
        }
        let pairs: Vec<(usize, usize)> =
            (0..layer_of.len()).flat_map(|a| (0..layer_of.len()).map(move |b| (a, b))).collect();
        for (pair, answer) in pairs.iter().zip(graph.are_ancestors(&pairs)) {
            prop_assert_eq!(answer, graph.ancestors(pair.1).contains(&pair.0));
        }
        Ok(())
    });
}

#[test]
fn a_cycle_is_always_found() {
    check(200, random_graph(), |(mut needs, order)| {
        let Some((job, need)) =
            needs.iter().enumerate().find_map(|(job, needs)| Some((job, *needs.first()?)))
        else {
            return Ok(());
        };
        needs[need].push(job);
        let source = Source::new("a.toml", toml_of(&needs, &order).into()).unwrap();
        let report = parse(&source).unwrap_err();
        prop_assert!(report.to_string().contains("in a cycle"), "{}", report);
        let cycles = Graph::from_needs(needs.iter().map(Vec::as_slice)).cycles(1_000);
        for cycle in &cycles {
            for (at, job) in cycle.iter().enumerate() {
                prop_assert!(needs[*job].contains(&cycle[(at + 1) % cycle.len()]));
            }
        }
        // The graph has no cycle after the first need of each cycle is removed.
        for cycle in &cycles {
            needs[cycle[0]].retain(|need| *need != cycle[1 % cycle.len()]);
        }
        prop_assert!(Graph::from_needs(needs.iter().map(Vec::as_slice)).cycles(1).is_empty());
        Ok(())
    });
}

#[test]
fn every_graph_can_be_drawn() {
    check(60, random_graph(), |(needs, order)| {
        let drawing = Drawing::of(&parsed("a.toml", &toml_of(&needs, &order)));
        prop_assert_eq!(drawing.text().lines().count(), needs.len());
        let edges: usize = needs.iter().map(Vec::len).sum();
        prop_assert_eq!(drawing.dot().matches(" -> ").count(), edges);
        prop_assert_eq!(drawing.mermaid().matches(" --> ").count(), edges);
        let svg = drawing.svg().unwrap();
        prop_assert_eq!(svg.matches("class=\"e\"").count(), edges);
        prop_assert_eq!(drawing.svg().unwrap(), svg, "the same graph gives the same picture");
        Ok(())
    });
}

const TOML: &str = include_str!("broken/templates.toml");
const JSON: &str = include_str!("broken/shapes.json");
const YAML: &str = include_str!("broken/yaml_keys.yml");

/// A text in which a few bytes are replaced, removed, repeated or inserted.
fn mutated(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let change = (0..text.len(), 0_u8..4, any::<u8>(), 1_usize..20);
    proptest::collection::vec(change, 1..8).prop_map(move |changes| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, kind, byte, length) in changes {
            let at = at.min(bytes.len().saturating_sub(1));
            let end = (at + length).min(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.drain(at..end)),
                2 => bytes.extend_from_within(at..end),
                _ => bytes.insert(at, b"{}[]\"'=,.\\\n#%&*!|>?-: \t~<@`"[usize::from(byte) % 27]),
            }
            if bytes.is_empty() {
                bytes.push(byte);
            }
        }
        bytes
    })
}

/// Parses the bytes in all formats and renders the errors.
fn read_and_report(bytes: &[u8]) {
    for path in ["a.toml", "a.json", "a.yaml"] {
        let result = Source::new(path, bytes.to_vec()).and_then(|source| parse(&source));
        if let Err(report) = result {
            assert!(!report.diagnostics().is_empty());
            assert!(!report.to_string().is_empty());
        }
    }
}

#[test]
fn no_text_makes_the_parser_panic() {
    check(1_500, prop_oneof![mutated(TOML), mutated(JSON), mutated(YAML)], |bytes| {
        read_and_report(&bytes);
        Ok(())
    });
    check(500, proptest::collection::vec(any::<u8>(), 0..200), |bytes| {
        read_and_report(&bytes);
        Ok(())
    });
}

#[test]
fn the_parser_refuses_all_json_that_serde_refuses() {
    const VALID: &str = r#"{"name": "ü\u0041", "description": "a\nb", "timeout": "5m", "jobs": {"a": {"run": "x", "priority": -5,
        "retry": {"jitter": 0.5e-1, "factor": 1E1}, "needs": [], "allow_failure": true}}}"#;
    parsed("a.json", VALID);
    check(3_000, mutated(VALID), |bytes| {
        let Ok(source) = Source::new("a.json", bytes) else { return Ok(()) };
        if serde_json::from_str::<serde_json::Value>(&source.text).is_err() {
            prop_assert!(parse(&source).is_err(), "{}", source.text);
        }
        Ok(())
    });
}

#[test]
fn no_template_makes_the_renderer_panic() {
    const TEMPLATE: &str =
        "a{{ jobs['x'].output[0:2] | default(params.n) | join(',') }}b{{ 1 if run.id else [2] }}";
    let context =
        serde_json::json!({"params": {"n": 1}, "run": {"id": 2}, "jobs": {"x": {"output": [1, "é"]}}});
    check(2_000, mutated(TEMPLATE), move |bytes| {
        let _ = template::render(&String::from_utf8_lossy(&bytes), &context);
        Ok(())
    });
}

#[test]
fn a_date_is_valid_if_the_calendar_has_it() {
    let param = parsed("a.toml", "[params]\nd = { type = 'date' }\n[jobs.a]\nrun = 'x'\n").params;
    check(500, (0..10_000_i32, 0..20_u32, 0..40_u32), move |(year, month, day)| {
        let text = format!("{year:04}-{month:02}-{day:02}");
        let supplied = vec![("d".to_owned(), params::Supplied::Text(text.clone()))];
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        prop_assert_eq!(params::bind(&param, supplied).is_ok(), (1..=days).contains(&day), "{}", text);
        Ok(())
    });
}
