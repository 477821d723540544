//! Masks a stream that arrives in pieces.

use std::sync::Arc;

use super::{Masker, Rest};

/// Masks one stream. What may be the beginning of a secret is kept until more arrives, and nothing else is.
#[derive(Debug)]
pub(crate) struct StreamMasker {
    masker: Arc<Masker>,
    pending: Vec<u8>,
}

impl StreamMasker {
    pub(crate) fn new(masker: Arc<Masker>) -> StreamMasker {
        StreamMasker { masker, pending: Vec::new() }
    }

    /// Adds bytes, and hands out what is decided.
    pub(crate) fn push(&mut self, bytes: &[u8], on_bytes: &mut dyn FnMut(&[u8])) {
        self.pending.extend_from_slice(bytes);
        self.scan(Rest::MayFollow, on_bytes);
    }

    /// Hands out the rest at the end of the stream.
    pub(crate) fn finish(&mut self, on_bytes: &mut dyn FnMut(&[u8])) {
        self.scan(Rest::Nothing, on_bytes);
    }

    fn scan(&mut self, rest: Rest, on_bytes: &mut dyn FnMut(&[u8])) {
        let done = self.masker.scan(&self.pending, rest, &mut |part, _is_mask| on_bytes(part));
        self.pending.drain(..done);
    }
}
