//! The pages, as functions from data to HTML.

pub mod assets;
pub mod url;
