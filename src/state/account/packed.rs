//! States that are made of fields.

/// Declares the fields of a state, the lowest bits first, each with its width. A number that its
/// field can't hold is packed as the largest that it can.
macro_rules! packed {
    ($(#[$of_all:meta])* struct $name:ident { $($(#[$of:meta])* $field:ident: $type:ty = $bits:expr,)* }) => {
        $(#[$of_all])*
        #[derive(Clone, Copy)]
        struct $name {
            $($(#[$of])* $field: $type,)*
        }

        impl $name {
            #[inline]
            fn of(mut state: u128) -> Self {
                $(
                    let $field = <$type>::try_from(state & ((1 << $bits) - 1)).unwrap_or(<$type>::MAX);
                    state >>= $bits;
                )*
                let _ = state;
                Self { $($field),* }
            }

            #[inline]
            fn state(self) -> u128 {
                let (mut state, mut at) = (0, 0);
                $(
                    state |= u128::from(self.$field).min((1 << $bits) - 1) << at;
                    at += $bits;
                )*
                debug_assert!(at <= $crate::state::account::STATE_BITS);
                state
            }
        }
    };
}

pub(super) use packed;
