//! What border and interior nodes have in common, and the links between nodes.
//!
//! # Invariants
//! - **N1** A link in a node that a reader can reach is empty or points to a node that was reachable when the reader pinned, or
//!   later. Links that are vacated are emptied, links to a node that leaves the tree are replaced before it is retired: only an
//!   [`Unlinked`](crate::unlinked::Unlinked) can be.
//!   Hence a link read while pinned stays readable until the pin ends, whatever else the reader knows about it.
//! - **N2** The border bit of a node never changes. It says which of the two types lies behind the header.
//!
//! # Memory ordering
//! `[link]` a link is stored with Release and loaded with Acquire: a reader that finds a node finds it initialised.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, OutOfMemory};
use ensilo_sync::atomic::{AtomicPtr, Ordering};

use crate::unlinked::check_is_allocated;
use crate::version::Version;

/// The head of both kinds of nodes. A node is known by its address.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) version: Version,
}

/// A node that stays readable as long as the guard lives.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) struct NodeRef<'g> {
    header: NonNull<Header>,
    guard: PhantomData<&'g Header>,
}

impl<'g> NodeRef<'g> {
    /// # Safety
    /// `header` begins a node that is not freed during `'g`.
    #[inline]
    pub(crate) unsafe fn new(header: NonNull<Header>) -> Self {
        NodeRef { header, guard: PhantomData }
    }

    /// Returns the node behind the value word of a slot that leads to a layer.
    ///
    /// # Safety
    /// The word was the value of such a slot at a moment of `'g`.
    #[inline]
    pub(crate) unsafe fn from_word(word: u64) -> Self {
        let header = ptr::with_exposed_provenance_mut(word as usize);
        // SAFETY: the caller vouches that this is the address of a layer's node, which is not null, and N1 keeps it.
        unsafe { Self::new(NonNull::new_unchecked(header)) }
    }

    /// Returns the word by which a slot that leads to a layer refers to this node.
    pub(crate) fn to_word(self) -> u64 {
        self.header.as_ptr().expose_provenance() as u64
    }

    #[inline]
    pub(crate) fn version(self) -> &'g Version {
        // SAFETY: the node is not freed during 'g, and its version is an atomic.
        unsafe { &(*self.header.as_ptr()).version }
    }

    #[inline]
    pub(crate) fn as_ptr(self) -> *mut Header {
        self.header.as_ptr()
    }

    #[inline]
    pub(crate) fn pointer(self) -> NonNull<Header> {
        self.header
    }
}

/// Border and interior nodes: they begin with a header.
///
/// # Safety
/// The type is `repr(C)` and its first field is the version, as in [`Header`].
pub(crate) unsafe trait Node: Sized {
    fn node(&self) -> NodeRef<'_> {
        // SAFETY: the implementor begins with what a header holds; the borrow of self keeps it.
        unsafe { NodeRef::new(NonNull::from(self).cast()) }
    }

    fn version(&self) -> &Version;

    /// Moves a new node into memory of its own. Nobody else knows it yet.
    fn allocate<'g>(self, guard: &'g Guard<'_>, account: AccountId) -> Result<&'g Self, OutOfMemory> {
        let block: NonNull<Self> = guard.allocate(Layout::new::<Self>(), account)?.cast();
        // SAFETY: the block is ours, large and aligned enough for the layout of Self; and it is freed through a guard that
        // is dropped no earlier than this one, or by `free`, whose callers forget it then.
        unsafe {
            block.write(self);
            block.expose_provenance();
            Ok(block.as_ref())
        }
    }

    /// Returns the node's memory, as it was allocated: it is written when it goes back, which a pointer made of the
    /// reference does not allow.
    fn memory(&self) -> NonNull<u8> {
        NonNull::with_exposed_provenance(NonNull::from(self).addr())
    }

    /// Frees the memory of a node that nobody else has ever seen.
    ///
    /// # Safety
    /// The node came from [`Node::allocate`] with this account, was never published, and is not used again.
    unsafe fn free(&self, guard: &Guard<'_>, account: AccountId) {
        // SAFETY: the caller's promise covers what the guard asks for.
        unsafe { guard.free(self.memory(), Layout::new::<Self>(), account) };
    }

    /// Frees the memory of a node once no reader can hold it any more.
    ///
    /// # Safety
    /// As for [`TreePart::retire`](crate::unlinked::TreePart::retire).
    unsafe fn retire_node(&self, guard: &Guard<'_>, account: AccountId) {
        // SAFETY: the caller's promise covers what the guard asks for.
        unsafe { guard.retire(self.memory(), Layout::new::<Self>(), account) };
    }
}

/// A pointer between nodes, see N1.
#[derive(Debug)]
pub(crate) struct Link<T>(AtomicPtr<T>);

impl<T> Link<T> {
    pub(crate) fn new(target: Option<&T>) -> Self {
        Link(AtomicPtr::new(Self::raw(target)))
    }

    #[inline]
    pub(crate) fn load(&self) -> Option<&T> {
        // Acquire: [link].
        let target = self.0.load(Ordering::Acquire);
        check_is_allocated(target.addr() as u64);
        // SAFETY: N1: the target is not freed before the pin ends, which the borrow of self does not outlive.
        unsafe { target.as_ref() }
    }

    #[inline]
    pub(crate) fn store(&self, target: Option<&T>) {
        // Release: [link].
        self.0.store(Self::raw(target), Ordering::Release);
    }

    pub(crate) fn is(&self, target: Option<&T>) -> bool {
        ptr::eq(self.0.load(Ordering::Relaxed), Self::raw(target))
    }

    fn raw(target: Option<&T>) -> *mut T {
        target.map_or(ptr::null_mut(), |target| ptr::from_ref(target).cast_mut())
    }
}

/// A pointer to a node of either kind, see N1.
#[derive(Debug)]
pub(crate) struct Child(AtomicPtr<Header>);

impl Child {
    pub(crate) fn new(target: Option<NodeRef<'_>>) -> Self {
        Child(AtomicPtr::new(Self::raw(target)))
    }

    #[inline]
    pub(crate) fn load(&self) -> Option<NodeRef<'_>> {
        // Acquire: [link].
        let header = NonNull::new(self.0.load(Ordering::Acquire))?;
        check_is_allocated(header.addr().get() as u64);
        // SAFETY: N1: the target is not freed before the pin ends, which the borrow of self does not outlive.
        Some(unsafe { NodeRef::new(header) })
    }

    pub(crate) fn store(&self, target: Option<NodeRef<'_>>) {
        // Release: [link].
        self.0.store(Self::raw(target), Ordering::Release);
    }

    fn raw(target: Option<NodeRef<'_>>) -> *mut Header {
        target.map_or(ptr::null_mut(), NodeRef::as_ptr)
    }
}
