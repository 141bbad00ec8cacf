//! Commit, pin and snapshot epochs, and memory reclamation.
