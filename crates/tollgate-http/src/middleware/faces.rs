//! What is written in the same way for each framework: the face that its users see, and how its types
//! of `http` are read and written. A macro writes it for the types of a crate, whose names it takes:
//! `Head`, `HeaderName`, `KeyExtractor` and so on.

mod handler;
mod keys;
mod options;
mod types;
