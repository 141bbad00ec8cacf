//! Bytes and epochs on disk: log files, checkpoints, the manifest, and their replay.
