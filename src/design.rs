//! How tollgate works, why it is right, and where it falls short.
//!
//! - [`glossary`]: the words of the code and of these pages.
//! - [`map`]: the crates, the way of a request, and where things are.
//! - [`internals`]: a key's word, the algorithms, the table; where to start reading.
//! - [`proof`]: why no window holds more than N, and why no thread waits for another.
//! - [`invariants`]: what always holds, by name, with its tests.
//! - [`limitations`]: known gaps, and numbers that run out.
//! - [`evidence`]: which test shows which claim.
//! - [`performance`]: what a decision costs, and why.

/// One module per chapter, whose text is a file. The text links to other files, so that it can be
/// read in the repository; the definitions before it win, and lead to modules.
macro_rules! chapters {
    ($($name:ident $file:literal)*) => {
        $(
            #[doc = "[glossary]: crate::design::glossary"]
            #[doc = "[map]: crate::design::map"]
            #[doc = "[internals]: crate::design::internals"]
            #[doc = "[proof]: crate::design::proof"]
            #[doc = "[invariants]: crate::design::invariants"]
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
    map "../docs/map.md"
    internals "../docs/internals.md"
    proof "../docs/proof.md"
    invariants "../docs/invariants.md"
    limitations "../docs/limitations.md"
    evidence "../docs/evidence.md"
    performance "../docs/performance.md"
}
