//! Suggests a name for one that was probably misspelled.

/// The candidate that is spelled most like `wrong`, if one is similar enough.
///
/// At most `budget` candidates are compared. The number of compared candidates is subtracted from the budget.
pub(crate) fn nearest<'c>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    budget: &mut usize,
) -> Option<&'c str> {
    let folded = fold(wrong);
    let allowed = (wrong.chars().count() / 3).clamp(1, 4);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if *budget == 0 {
            break;
        }
        *budget -= 1;
        if candidate.len().abs_diff(wrong.len()) > 4 * allowed {
            continue;
        }
        let distance = match fold(candidate) == folded {
            true => 0,
            false => strsim::osa_distance(wrong, candidate),
        };
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The name in small letters and with `_` for `-`. Names that differ only in these are the same word.
fn fold(name: &str) -> String {
    name.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn misspelled_names_are_found_and_different_names_are_not() {
        let keys = ["timeout", "needs", "max_attempts", "on_interrupt"];
        let cases = [
            ("tmeout", Some("timeout")),
            ("need", Some("needs")),
            ("max-attempts", Some("max_attempts")),
            ("MaxAttempts", Some("max_attempts")),
            ("colour", None),
            ("x", None),
        ];
        for (wrong, right) in cases {
            assert_eq!(nearest(wrong, keys, &mut 1_000), right, "{wrong}");
        }
    }

    #[test]
    fn the_search_stops_when_the_budget_is_used_up() {
        let mut budget = 1;
        assert_eq!(nearest("needs2", ["x", "needs"], &mut budget), None);
        assert_eq!(budget, 0);
    }
}
