//! The tuples of keys: of one to eight dimensions.

/// Calls a macro for the tuples of each length, with the types and places of their parts.
macro_rules! each_tuple {
    ($each:ident) => {
        $each!(A 0);
        $each!(A 0, B 1);
        $each!(A 0, B 1, D 2);
        $each!(A 0, B 1, D 2, E 3);
        $each!(A 0, B 1, D 2, E 3, G 4);
        $each!(A 0, B 1, D 2, E 3, G 4, H 5);
        $each!(A 0, B 1, D 2, E 3, G 4, H 5, I 6);
        $each!(A 0, B 1, D 2, E 3, G 4, H 5, I 6, J 7);
    };
}

pub(super) use each_tuple;
