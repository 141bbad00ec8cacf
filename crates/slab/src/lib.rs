//! Memory for records and nodes: per-worker size classes on huge pages.
