//! What must hold of the texts of the project: its pages, examples, invariants, imports and workflows.

mod crate_docs;
mod every_item_has_an_example;
mod invariants;
mod no_circles;
mod workflows;
