//! Keeps threads and their memory where the plan has them.

use std::collections::BTreeSet;
use std::{fmt, io, thread};

use crate::affinity::run_on;
use crate::placement::InstancePlace;
use crate::topology::NodeId;

/// As many nodes as the kernel can be told of.
const NODES_MAX: usize = 1024;
const WORD_BITS: usize = u64::BITS as usize;

/// Why a thread could not be bound.
#[derive(Debug)]
pub struct BindError(io::Error);

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the thread cannot be kept where it is planned to run: {}", self.0)
    }
}

impl std::error::Error for BindError {}

/// Keeps the calling thread on the processor of this worker of an instance, and takes the memory that it touches first from the instance's
/// nodes: from its node while that has some, or from several nodes in turn. Where these have no memory that the process may use, it comes from where
/// it did before. A place that the operating system decides on binds nothing.
///
/// Threads that the calling thread starts later are bound as it is.
///
/// # Errors
/// [`BindError`] when the process may not run there, as when the place was planned for another machine. Nothing has changed then, or the
/// processor alone.
pub fn bind_this_thread(place: &InstancePlace, worker: usize) -> Result<(), BindError> {
    let Some(cpu) = place.cpu_of_worker(worker) else { return Ok(()) };
    run_on(cpu).and_then(|()| take_memory_from(place.nodes())).map_err(BindError)
}

/// Runs `work` in a thread that takes the memory it touches first from the nodes of this place, as its workers do, and so do the threads that it
/// starts. They run on any processor.
///
/// # Errors
/// When there is no thread, or the kernel refuses the nodes.
pub(crate) fn with_memory_of<R: Send>(
    place: &InstancePlace,
    work: impl FnOnce() -> R + Send,
) -> io::Result<R> {
    thread::scope(|scope| {
        let run = || {
            // A place that the operating system decides on binds nothing.
            place.cpu_of_worker(0).map_or(Ok(()), |_| take_memory_from(place.nodes()))?;
            Ok(work())
        };
        let thread = thread::Builder::new().name("open".to_owned()).spawn_scoped(scope, run)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Takes the memory of this thread from nodes: from one while it has some, or from several in turn.
fn take_memory_from(nodes: &BTreeSet<NodeId>) -> io::Result<()> {
    let mut mask = [0u64; NODES_MAX / WORD_BITS];
    for node in nodes.iter().map(|node| node.0 as usize) {
        let word = mask.get_mut(node / WORD_BITS).ok_or(io::ErrorKind::InvalidInput)?;
        *word |= 1 << (node % WORD_BITS);
    }
    let mode = if nodes.len() == 1 { libc::MPOL_PREFERRED } else { libc::MPOL_INTERLEAVE };
    // SAFETY: the call reads one bit less than it is told, and the array has as many.
    let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask.as_ptr(), NODES_MAX + 1) };
    match io::Error::last_os_error() {
        _ if done == 0 => Ok(()),
        // A kernel without nodes has one memory, some sandboxes refuse the call, and nodes may have no memory that the process may use: then
        // the thread's memory comes from where it does by default.
        error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EINVAL)) => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{Instances, Placement, Plan};
    use crate::topology::Topology;

    fn in_a_thread(work: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    }

    #[test]
    fn a_worker_runs_on_its_processor() {
        let plan = Plan::new(&Topology::of_this_machine().unwrap(), Instances::PerCore, Placement::Group);
        for place in plan.instances() {
            in_a_thread(|| {
                bind_this_thread(place, 0).unwrap();
                assert_eq!(crate::affinity::allowed().unwrap(), place.cpus()[..1]);
            });
        }
    }

    #[test]
    fn a_place_that_the_system_decides_on_binds_nothing() {
        let plan = Plan::new(&Topology::of_this_machine().unwrap(), Instances::One, Placement::System);
        in_a_thread(|| {
            let before = crate::affinity::allowed().unwrap();
            bind_this_thread(&plan.instances()[0], 0).unwrap();
            assert_eq!(crate::affinity::allowed().unwrap(), before);
        });
    }

    #[test]
    fn a_place_on_another_machine_is_refused() {
        let other = Topology::from_description("# CPU,Core,Socket\n100000,0,0\n4000000000,1,0\n").unwrap();
        for place in Plan::new(&other, Instances::PerCore, Placement::Group).instances() {
            in_a_thread(|| {
                let error = bind_this_thread(place, 0).unwrap_err();
                assert!(error.to_string().contains("cannot be kept"), "{error}");
            });
        }
    }
}
