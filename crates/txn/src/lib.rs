//! Records, TID words, read, write and node sets, and the commit protocols.
