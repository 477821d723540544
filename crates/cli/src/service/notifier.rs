//! Delivers notifications: a thread for each target, so that one that does not answer delays no other.

use std::cell::RefCell;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use windlass_engine::Store;
use windlass_engine::store::{ClaimedNotification, DELIVERY_ATTEMPTS_MAX, DeliveryResult, NewTarget};
use windlass_views::message_of;
use windlass_worker::{LinkLocal, Message, MessageOutput, NotSent, Recipient, Stop, StopCause, send};

#[cfg(feature = "otlp")]
use super::traces::Export;
use crate::config::{Means, NotifyTarget};
use crate::database::Database;
use crate::error::Failure;

/// The time between two looks for notifications.
const POLL: Duration = Duration::from_secs(1);
/// The pause after an error of the database.
const PAUSE: Duration = Duration::from_secs(5);
/// How much longer than a delivery may take a service keeps a notification.
const LEASE_MARGIN_MS: i64 = 30_000;
/// How often the rows of the targets are compared with the configuration, in looks.
const LOOKS_PER_CHECK: u32 = 60;

/// The threads that deliver. They end when this is dropped.
pub(super) struct Notifier {
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

impl Notifier {
    /// Writes the targets into the tables, and begins to deliver.
    pub(super) fn start(
        database: &Database,
        worker_id: i64,
        targets: &[NotifyTarget],
        link_local: LinkLocal,
    ) -> Result<Notifier, Failure> {
        let rows: Vec<NewTarget> = targets.iter().map(NotifyTarget::row).collect();
        database.ask(|store| store.notifications().set_targets(worker_id, &rows))?;
        let mut notifier = Notifier { stop: Stop::default(), threads: Vec::new() };
        for (index, target) in targets.iter().enumerate() {
            let delivery = Delivery {
                store: database.store().clone(),
                target: target.clone(),
                link_local,
                stop: notifier.stop.clone(),
                refusals: RefCell::default(),
                // The first one does it for all.
                check: (index == 0).then(|| (worker_id, rows.clone())),
            };
            let thread = thread::Builder::new()
                .name("windlass-notify".to_owned())
                .spawn(move || delivery.run())
                .map_err(|error| {
                    Failure::no_resources(&format!("notifications cannot be delivered: {error}"))
                })?;
            notifier.threads.push(thread);
        }
        Ok(notifier)
    }
}

impl Notifier {
    /// Ends the threads. What they deliver now is delivered again.
    pub(super) fn end(&mut self) {
        self.stop.request(StopCause::Leaving);
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread of one target.
struct Delivery {
    store: Store,
    target: NotifyTarget,
    link_local: LinkLocal,
    stop: Stop,
    /// What the target has refused since it took something.
    refusals: RefCell<Refusals>,
    /// What this thread compares with the tables.
    check: Option<(i64, Vec<NewTarget>)>,
}

/// What a target refuses for the same reason. A wrong address refuses everything, and one line is enough for that.
#[derive(Default)]
struct Refusals {
    reason: String,
    count: u64,
}

impl Delivery {
    fn run(&self) {
        let mut is_failing = false;
        let mut looks = 0;
        while self.stop.cause().is_none() {
            let pause = match self.step(looks) {
                Ok(true) => continue,
                Ok(false) => {
                    is_failing = false;
                    POLL
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(target = self.target.name, %error, "notifications wait for the database");
                    }
                    PAUSE
                }
            };
            looks = (looks + 1) % LOOKS_PER_CHECK;
            self.stop.wait(pause);
        }
    }

    /// Delivers one notification. Returns whether there was one.
    fn step(&self, looks: u32) -> windlass_db::Result<bool> {
        if let (0, Some((worker_id, targets))) = (looks, &self.check) {
            self.store.notifications().set_targets(*worker_id, targets)?;
        }
        let lease_ms = self.target.timeout_ms + LEASE_MARGIN_MS;
        let Some(claimed) = self.store.notifications().claim(&self.target.name, lease_ms)? else {
            return Ok(false);
        };
        let result = match &self.target.means {
            Means::Messages { recipient, .. } => self.send(&claimed, recipient)?,
            #[cfg(feature = "otlp")]
            Means::Traces(collector) => {
                let export =
                    Export { target: &self.target, collector, link_local: self.link_local, stop: &self.stop };
                export.deliver(&self.store, &claimed)?
            }
        };
        if self.store.notifications().record(&claimed, &result)? {
            log(&claimed, &result, &mut self.refusals.borrow_mut());
        }
        Ok(true)
    }

    /// Sends the message about a notification.
    fn send(
        &self,
        claimed: &ClaimedNotification,
        recipient: &Recipient,
    ) -> windlass_db::Result<DeliveryResult> {
        let details = self.store.notifications().details(claimed)?;
        let (text, json) = message_of(claimed, &details);
        let message = Message {
            id: claimed.message_id(),
            sent_at_s: self.store.clock().now_ms() / 1_000,
            json: json.to_string(),
            variables: variables(&claimed.message_id(), claimed.event.as_str(), &text, &claimed.subject),
        };
        let timeout_ms = self.target.timeout_ms;
        let sent =
            send(&message, recipient, timeout_ms, self.link_local, MessageOutput::Discarded, &self.stop);
        Ok(result_of(sent.map(|_said| ())))
    }
}

/// What came of a delivery.
pub(super) fn result_of(sent: Result<(), NotSent>) -> DeliveryResult {
    match sent {
        Ok(()) => DeliveryResult::Delivered,
        Err(NotSent::Interrupted) => DeliveryResult::Interrupted,
        Err(NotSent::Failed(reason) | NotSent::Answered { reason, .. }) => DeliveryResult::Failed(reason),
    }
}

/// The variables of a command.
pub(crate) fn variables(id: &str, event: &str, text: &str, subject: &str) -> Vec<(&'static str, String)> {
    vec![
        ("WINDLASS_NOTIFICATION_ID", id.to_owned()),
        ("WINDLASS_EVENT", event.to_owned()),
        ("WINDLASS_TEXT", text.replace('\0', " ")),
        ("WINDLASS_SUBJECT", subject.replace('\0', " ")),
    ]
}

fn log(claimed: &ClaimedNotification, result: &DeliveryResult, refusals: &mut Refusals) {
    let ClaimedNotification { id, target, event, subject, subject_id, attempt, .. } = claimed;
    match result {
        DeliveryResult::Delivered => {
            tracing::info!(notification = id, %target, %event, %subject, subject_id, "notification delivered");
            let Refusals { count, .. } = std::mem::take(refusals);
            if count > 1 {
                tracing::warn!(%target, given_up = count, "the target takes notifications again");
            }
        }
        DeliveryResult::Interrupted => {}
        DeliveryResult::Refused(error) if refusals.count > 0 && refusals.reason == *error => {
            refusals.count += 1;
            tracing::debug!(notification = id, %target, %event, %subject, subject_id, error, "notification given up");
        }
        DeliveryResult::Refused(error) => {
            *refusals = Refusals { reason: error.clone(), count: refusals.count + 1 };
            tracing::error!(
                notification = id, %target, %event, %subject, subject_id, error,
                "notification given up: the target refused it, and would refuse it again; others that it refuses so are \
                 given up without a line, and `windlass notify` lists them"
            );
        }
        DeliveryResult::Failed(error) if *attempt >= DELIVERY_ATTEMPTS_MAX => {
            tracing::error!(notification = id, %target, %event, %subject, subject_id, error, "notification given up");
        }
        DeliveryResult::Failed(error) => tracing::warn!(
            notification = id, %target, %event, %subject, subject_id, attempt, error,
            "notification not delivered; trying again later"
        ),
    }
}
