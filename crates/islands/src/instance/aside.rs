//! What an instance does in threads of their own, while its workers go on.

use std::thread;

use super::carry_out::refusal;
use super::submission::Answer;
use crate::commit::{Refusal, RefusalReason};

/// Answers whatever happens, also where there is no thread, or it panics.
struct Answering(Option<Answer<Result<Vec<u8>, Refusal>>>);

impl Answering {
    fn answer(&mut self, result: Result<Vec<u8>, Refusal>) {
        if let Some(answer) = self.0.take() {
            answer(result);
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let message = "the program has panicked, or there was no thread for it";
        self.answer(Err(Refusal::new(RefusalReason::Rejected, message)));
    }
}

/// Runs something, and answers what it returns.
pub(super) fn run(
    answer: Answer<Result<Vec<u8>, Refusal>>,
    body: impl FnOnce() -> ensilo::Result<Vec<u8>> + Send + 'static,
) {
    let mut answering = Answering(Some(answer));
    // Where no thread can be made, the answer says so.
    let _ = thread::Builder::new().name("island-aside".to_owned()).spawn(move || {
        answering.answer(body().map_err(|error| refusal(&error)));
    });
}
