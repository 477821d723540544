//! Reads that belong together and share one transaction: those of a page. A transaction of its own for each would take longer than
//! many of them.

use std::cell::RefCell;
use std::sync::Arc;

use super::preamble::Purpose;
use super::session::{BegunTransaction, Sessions, TransactionState};

/// What the reads of a thread share.
enum Shared {
    /// They share nothing.
    Nothing,
    /// The first read begins a transaction.
    NotBegun,
    /// A transaction without a failure.
    Begun(Arc<Sessions>, Box<BegunTransaction>),
}

thread_local! {
    static OF_THIS_THREAD: RefCell<Shared> = const { RefCell::new(Shared::Nothing) };
}

/// While it lives, the reads of this thread share transactions. Then the last one is ended.
pub(super) struct SharedReads;

impl SharedReads {
    pub(super) fn begin() -> SharedReads {
        OF_THIS_THREAD.set(Shared::NotBegun);
        SharedReads
    }
}

impl Drop for SharedReads {
    fn drop(&mut self) {
        end(OF_THIS_THREAD.replace(Shared::Nothing));
    }
}

/// The transaction that an earlier read of this thread has left open.
pub(super) fn take(sessions: &Sessions, purpose: Purpose) -> Option<BegunTransaction> {
    match purpose {
        Purpose::ReadAtMost { .. } => {}
        Purpose::Read | Purpose::Write => return None,
    }
    OF_THIS_THREAD.with_borrow_mut(|shared| match shared {
        Shared::Nothing | Shared::NotBegun => None,
        Shared::Begun(of, _) if !std::ptr::eq(&raw const **of, sessions) => None,
        Shared::Begun(..) => match std::mem::replace(shared, Shared::NotBegun) {
            Shared::Begun(_, transaction) => Some(*transaction),
            Shared::Nothing | Shared::NotBegun => None,
        },
    })
}

/// Leaves a transaction open for the next read of this thread. Gives it back if it has not begun, or if the reads of this thread
/// share nothing.
pub(super) fn keep(sessions: &Arc<Sessions>, transaction: BegunTransaction) -> Option<BegunTransaction> {
    let is_shared = OF_THIS_THREAD.with_borrow(|shared| !matches!(shared, Shared::Nothing));
    if !is_shared || !transaction.session.client.has_begun() {
        return Some(transaction);
    }
    end(OF_THIS_THREAD.replace(Shared::Begun(Arc::clone(sessions), Box::new(transaction))));
    None
}

/// Ends a transaction. A connection on which that fails is not used again.
fn end(shared: Shared) {
    match shared {
        Shared::Nothing | Shared::NotBegun => {}
        Shared::Begun(sessions, transaction) => {
            let BegunTransaction { mut session, naming, .. } = *transaction;
            sessions.end_preamble(&mut session, naming, TransactionState::Open);
            if session.client.batch_execute("COMMIT").is_err() {
                session.discard();
            }
        }
    }
}
