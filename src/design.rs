//! How tollgate works, why it is right, and where it falls short.
//!
//! - [`glossary`]: the words of the code and of these pages.
//! - [`internals`]: memory, claims, resizes, states; where to start reading.
//! - [`proof`]: helpers; why some request always ends; why no window holds more than N.
//! - [`table_and_clocks`]: how cells are found, made and freed; the key cap; clocks that lag.
//! - [`algorithms`]: how each algorithm and feature uses that machinery; where a new one goes.
//! - [`invariants`], [`more_invariants`]: what always holds, by name, with its tests.
//! - [`limitations`]: known gaps, and numbers that run out.
//! - [`evidence`]: which test shows which claim.
//! - [`performance`]: what a decision costs, and why.

/// One module per chapter, whose text is a file. The text links to other files, so that it can be
/// read in the repository; the definitions before it win, and lead to modules.
macro_rules! chapters {
    ($($name:ident $file:literal)*) => {
        $(
            #[doc = "[glossary]: crate::design::glossary"]
            #[doc = "[internals]: crate::design::internals"]
            #[doc = "[proof]: crate::design::proof"]
            #[doc = "[table and clocks]: crate::design::table_and_clocks"]
            #[doc = "[algorithms]: crate::design::algorithms"]
            #[doc = "[invariants]: crate::design::invariants"]
            #[doc = "[more invariants]: crate::design::more_invariants"]
            #[doc = "[limitations]: crate::design::limitations"]
            #[doc = "[evidence]: crate::design::evidence"]
            #[doc = "[performance]: crate::design::performance"]
            #[doc = ""]
            #[doc = include_str!($file)]
            pub mod $name {}
        )*
    };
}

chapters! {
    glossary "../docs/glossary.md"
    internals "../docs/internals.md"
    proof "../docs/proof.md"
    table_and_clocks "../docs/table_and_clocks.md"
    algorithms "../docs/algorithms.md"
    invariants "../docs/invariants.md"
    more_invariants "../docs/more_invariants.md"
    limitations "../docs/limitations.md"
    evidence "../docs/evidence.md"
    performance "../docs/performance.md"
}
