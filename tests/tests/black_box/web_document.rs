//! The OpenAPI document, as programs use it that were not written with this server in mind.

use crate::browser::passes;

#[test]
fn the_server_keeps_its_document() {
    passes("test_document.py");
}
