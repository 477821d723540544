//! REST below `/api/v1`. Each route answers with the same JSON as the verb of the command line with `-o json`.

mod access;
mod definitions;
mod document;
mod failures;
mod job_changes;
mod jobs;
mod lists;
mod queues;
mod run_changes;
mod runs;
mod schedules;
mod system;
mod timeline;
mod workflows;

#[cfg(test)]
pub(crate) use document::DOCUMENT;
pub(crate) use queues::name_of as name_of_queue;

use crate::route::Route;

/// All routes.
pub(crate) const ROUTES: [&[Route]; 12] = [
    runs::ROUTES,
    timeline::ROUTES,
    failures::ROUTES,
    run_changes::ROUTES,
    jobs::ROUTES,
    job_changes::ROUTES,
    workflows::ROUTES,
    definitions::ROUTES,
    schedules::ROUTES,
    queues::ROUTES,
    system::ROUTES,
    access::ROUTES,
];
