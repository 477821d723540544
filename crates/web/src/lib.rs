//! The pages and the REST interface of Windlass, over HTTP. The only crate with an async runtime: the store is
//! called on plain threads.

pub mod pages;
