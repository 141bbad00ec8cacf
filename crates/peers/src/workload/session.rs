//! A client that was made, or why it was not: the driver asks for sessions where nothing can fail.

use ensilo_bench::driver::Failure;

use crate::peer::Peer;

/// A client of `P`, or the failure that the first transaction tells.
pub(super) struct Connected<'a, P: Peer + 'a>(Result<P::Client<'a>, Failure>);

impl<'a, P: Peer> Connected<'a, P> {
    pub(super) fn new(peer: &'a P) -> Self {
        Self(peer.client())
    }

    /// The client.
    #[inline]
    pub(super) fn client(&mut self) -> Result<&mut P::Client<'a>, Failure> {
        self.0.as_mut().map_err(|failure| std::mem::replace(failure, Failure::Interrupted))
    }
}
