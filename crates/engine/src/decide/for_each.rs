//! What the scheduler does with a job that has `for_each`: it becomes a group, and each item a job of its own.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use windlass_workflow::ForEach;

use super::{Control, Decision, EndWithoutAttempt, Then};

/// The column `jobs.kind` of a group. No worker claims a group, because it is never PENDING.
pub const GROUP_KIND: &str = "group";

/// A job that is executed for each item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The kind of the items. Their payload is that of the group's row.
    pub kind: String,
    /// Where the items come from, and how many run at a time.
    pub for_each: ForEach,
    /// What the scheduler does with each item before it can be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Box<Then>>,
}

/// The items of a group, to be inserted.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    /// The kind of the items.
    pub kind: String,
    /// The items in order, each as JSON.
    pub items: Vec<String>,
    /// What the scheduler decides about each item before it runs.
    pub control: Control,
    /// How many items may run at a time.
    pub max_parallel: Option<i64>,
}

/// Decides about the items of a group, with the values that its expression reads. `uses` are the names of the jobs that the items'
/// own decisions read. A group without items is successful.
#[must_use]
pub fn expand(group: &Group, uses: &[String], values: &Json) -> Decision {
    let items = match group.for_each.items(values) {
        Ok(items) => items,
        Err(reason) => return Decision::End(EndWithoutAttempt::failed(reason)),
    };
    if items.is_empty() {
        return Decision::Done { output: None };
    }
    Decision::Expand(Box::new(Expansion {
        kind: group.kind.clone(),
        items: items.iter().map(Json::to_string).collect(),
        control: Control { then: group.then.as_deref().cloned(), uses: uses.to_vec(), ..Control::default() },
        max_parallel: group.for_each.max_parallel,
    }))
}

/// How a group ends whose last item has ended. `broken` counts the items that failed, were cancelled, or were skipped because
/// of one that failed; `first` is the name of the first of them.
#[must_use]
pub(crate) fn end_reason(broken: i64, items: i64, first: &str) -> String {
    match broken {
        1 => format!("1 of {items} items failed: {first}"),
        broken => {
            format!("{broken} of {items} items failed, were cancelled or skipped, the first is {first}")
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;
    use windlass_workflow::{Expression, ItemSource};

    use super::*;
    use crate::status::JobStatus;

    fn decided(text: &str) -> Decision {
        let for_each = ForEach::of(ItemSource::In(Expression::parse(text).unwrap()));
        let group = Group { kind: "shell".to_owned(), for_each, then: None };
        let control = Control { then: Some(Then::ForEach(group)), ..Control::default() };
        // The row has the decision as JSON.
        let stored = serde_json::to_string(&control).unwrap();
        let Ok(Control { then: Some(Then::ForEach(group)), .. }) = serde_json::from_str(&stored) else {
            panic!("{stored}")
        };
        expand(&group, &[], &json!({ "params": { "some": ["a", 2], "none": [], "text": "a" } }))
    }

    #[test]
    fn a_list_becomes_items_and_anything_else_ends_the_group() {
        let Decision::Expand(expansion) = decided("params.some") else { panic!("no items") };
        assert_eq!(
            (expansion.kind.as_str(), expansion.items),
            ("shell", vec!["\"a\"".to_owned(), "2".to_owned()])
        );
        assert_eq!(decided("params.none"), Decision::Done { output: None });
        let Decision::End(end) = decided("params.text") else { panic!("it goes on") };
        assert_eq!(
            (end.status, end.reason.as_str()),
            (JobStatus::Failed, "`for_each` gives a text, not a list")
        );
    }
}
