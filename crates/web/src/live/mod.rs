//! Pages that are open follow what changes. One thread hears the wake-ups of the engine, and reads once for all viewers. A viewer
//! is told only what has changed, and asks for it by itself.

mod follow;
mod hub;
mod stream;
pub(crate) mod viewers;

pub(crate) use hub::Hub;
pub(crate) use stream::ROUTES;
pub(crate) use viewers::Viewers;
