//! A process that is not allowed to call `membarrier(2)`, as in a container with a strict filter.

/// Refuses `membarrier` to the calling thread, and to those that it will start. It is final.
pub(crate) fn refuse_membarrier() {
    let number = u32::try_from(libc::SYS_membarrier).unwrap();
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    let instruction = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        // The number of the call is the first word of what a filter is given.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, refusal),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the first call takes numbers alone. The second reads the program, which points to as many instructions as it says; both
    // live until it returns, and the system keeps a copy.
    unsafe {
        assert_eq!(
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            0,
            "{}",
            std::io::Error::last_os_error()
        );
        let set = libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program);
        assert_eq!(set, 0, "no filter can be set: {}", std::io::Error::last_os_error());
    }
}
