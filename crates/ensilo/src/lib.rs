//! An in-memory, serializable transactional database for multicore machines.
