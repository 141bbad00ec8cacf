//! Which processors a thread may run on.

use std::io;

use crate::topology::CpuId;

/// Sets of processors are read into as many words at first, and into twice as many until they fit.
const WORDS_MIN: usize = 16;
const WORDS_MAX: usize = 1 << 14;
const WORD_BITS: usize = u64::BITS as usize;

/// Returns the processors that the calling thread may run on.
pub(crate) fn allowed() -> io::Result<Vec<CpuId>> {
    let mut set = vec![0u64; WORDS_MIN];
    loop {
        // SAFETY: the call writes no more bytes than it is told, and the vector has as many.
        let read =
            unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&*set), set.as_mut_ptr()) };
        match io::Error::last_os_error() {
            _ if read >= 0 => break,
            // The machine may have more processors than the set has bits.
            error if error.raw_os_error() == Some(libc::EINVAL) && set.len() < WORDS_MAX => {
                set = vec![0; 2 * set.len()];
            }
            error => return Err(error),
        }
    }
    let is_in = |cpu: &usize| set[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1 == 1;
    Ok((0..set.len() * WORD_BITS).filter(is_in).map(|cpu| CpuId(cpu as u32)).collect())
}

/// Keeps the calling thread on a processor.
pub(crate) fn run_on(cpu: CpuId) -> io::Result<()> {
    let cpu = cpu.0 as usize;
    if cpu >= WORDS_MAX * WORD_BITS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = vec![0u64; cpu / WORD_BITS + 1];
    set[cpu / WORD_BITS] |= 1 << (cpu % WORD_BITS);
    // SAFETY: the call reads no more bytes than it is told, and the vector has as many.
    let done = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&*set), set.as_ptr()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
