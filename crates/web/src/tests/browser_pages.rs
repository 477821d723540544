//! The tests with a browser visit every page. They take the addresses from a list, which is compared with the routes here.

use std::collections::BTreeSet;

use serde_json::Value;

use super::site::Site;
use crate::route::{self, Client, Method};

const LIST: &str = include_str!("../../../../tests/browser/pages.json");

#[test]
fn the_tests_with_a_browser_visit_every_page() {
    let rows: Vec<Value> = serde_json::from_str(LIST).unwrap();
    let listed = |key: &str| -> BTreeSet<String> {
        let rows = rows.iter().filter(|row| row.get(key).is_some());
        rows.map(|row| row["route"].as_str().unwrap().to_owned())
            .filter(|path| path.starts_with('/'))
            .collect()
    };
    let (visited, left_out) = (listed("addresses"), listed("no_page"));
    let routes: BTreeSet<String> = route::all()
        .iter()
        .filter(|route| route.method == Method::Get && route.client == Client::Browser)
        .map(|route| route.path.to_owned())
        .collect();
    let without_row: Vec<&String> =
        routes.iter().filter(|path| !visited.contains(*path) && !left_out.contains(*path)).collect();
    assert!(without_row.is_empty(), "tests/browser/pages.json has no row for {without_row:?}");
    let unknown: Vec<&String> = visited.union(&left_out).filter(|path| !routes.contains(*path)).collect();
    assert!(unknown.is_empty(), "tests/browser/pages.json has rows for what is no page: {unknown:?}");
}

#[test]
fn an_address_without_a_route_is_told_to_a_person_by_a_page() {
    let site = Site::new();
    let page = site.get("/nothing").header("accept", "text/html,*/*").send();
    assert!(page.is(404).body.contains("There is no page at this address."), "{page:?}");
    let problem = site.get("/nothing").header("accept", "application/json").send();
    assert_eq!(problem.is(404).json()["type"], "urn:windlass:not_found");
}
