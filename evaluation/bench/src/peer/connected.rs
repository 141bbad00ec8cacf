//! A client that was made, or why it was not: the driver asks for sessions where nothing can fail.

use crate::driver::Failure;

/// A client, or the failure that the first transaction tells.
#[derive(Debug)]
pub struct Connected<C>(Result<C, Failure>);

impl<C> Connected<C> {
    /// Keeps what became of the attempt to make a client.
    pub fn new(client: Result<C, Failure>) -> Self {
        Self(client)
    }

    /// The client.
    ///
    /// # Errors
    /// Why there is none, once.
    #[inline]
    pub fn client(&mut self) -> Result<&mut C, Failure> {
        self.0.as_mut().map_err(|failure| std::mem::replace(failure, Failure::Interrupted))
    }
}
