//! Derive macros for typed rows.
