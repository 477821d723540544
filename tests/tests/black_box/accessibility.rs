//! The pages for all people. They are the same on both databases.

use crate::browser::passes;

#[test]
fn every_page_keeps_the_rules_for_accessibility() {
    passes("test_accessibility.py");
}

#[test]
fn everything_can_be_done_by_keyboard() {
    passes("test_keyboard.py");
}
