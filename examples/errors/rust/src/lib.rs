//! The crate under test stands here; tests/errors.rs runs a program of it.
