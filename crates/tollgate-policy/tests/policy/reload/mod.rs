//! A policy file that changes while it is in use. The file system is real; the schedule is the
//! test's own.

mod files;
mod folder;
mod structure;
mod under_load;
mod watched;
