//! A span that follows a task: it goes on while the task is polled, in whatever thread.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use crate::{DetachedSpan, Loss, UndisturbedSpan, Witness};

/// Runs a future, and tells what the scheduler took from the threads that polled it, while they did. The time
/// between two polls, in which the task waits, is not the span's.
///
/// ```
/// # async fn example() {
/// let (answer, loss) = hourglass_witness::follow(async { 42 }).await;
/// if let Some(loss) = loss {
///     println!("a poll lost {}: {}", loss.off_cpu, loss.cause);
/// }
/// # }
/// ```
///
/// For any executor; the future stays `Send` if it was. Where a thread that polls it has no witness any more
/// (it is about to end), that poll is left out.
pub async fn follow<F: Future>(future: F) -> (F::Output, Option<Loss>) {
    let mut future = pin!(future);
    let mut so_far: Result<UndisturbedSpan, DetachedSpan> = Ok(UndisturbedSpan::default());
    poll_fn(|context| {
        let Ok(witness) = Witness::new() else {
            return future.as_mut().poll(context).map(|output| (output, None));
        };
        let span = match so_far {
            Ok(undisturbed) => witness.attach_undisturbed(undisturbed),
            Err(travelling) => witness.attach(travelling),
        };
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready((output, witness.end(span))),
            Poll::Pending => {
                so_far = witness.detach_undisturbed(&span);
                Poll::Pending
            }
        }
    })
    .await
}
