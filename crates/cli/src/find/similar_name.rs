//! The name that a mistyped name most likely means.

/// A name must be at least this similar to be suggested; 1 means equal.
const MIN_SIMILARITY: f64 = 0.7;

/// The most similar of `names`, if one is similar enough.
pub(crate) fn nearest_name<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|candidate| (similarity(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

/// Two letters in the wrong order are nearly equal, also in a short name.
fn similarity(name: &str, candidate: &str) -> f64 {
    const ONE_MISTAKE: f64 = 0.9;
    const SHORTEST: usize = 3;
    let similarity = strsim::jaro_winkler(name, candidate);
    match name.chars().count() >= SHORTEST && strsim::osa_distance(name, candidate) == 1 {
        true => similarity.max(ONE_MISTAKE),
        false => similarity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_is_found_and_another_is_not() {
        let names = ["build", "test", "deploy"];
        assert_eq!(nearest_name("buidl", names.into_iter()), Some("build"));
        assert_eq!(nearest_name("tests", names.into_iter()), Some("test"));
        assert_eq!(nearest_name("xyz", names.into_iter()), None);
        assert_eq!(nearest_name("rnu", ["run", "command"].into_iter()), Some("run"));
    }
}
