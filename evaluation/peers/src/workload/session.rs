//! A client that was made, or why it was not: the driver asks for sessions where nothing can fail.

use ensilo_bench::driver::Failure;

/// A client, or the failure that the first transaction tells.
#[derive(Debug)]
pub(super) struct Connected<C>(Result<C, Failure>);

impl<C> Connected<C> {
    pub(super) fn new(client: Result<C, Failure>) -> Self {
        Self(client)
    }

    /// The client.
    #[inline]
    pub(super) fn client(&mut self) -> Result<&mut C, Failure> {
        self.0.as_mut().map_err(|failure| std::mem::replace(failure, Failure::Interrupted))
    }
}
