//! The texts of errors and of other enums, the errors within errors, and checks that end in one.

/// Implements `Display` for an enum, with one row for each variant: the variant, its fields and its
/// text. Values after the text are formatted as those of `write!`.
macro_rules! texts {
    ($type:ident {
        $($variant:ident $({ $($field:ident),+ })? $(($inner:ident))? => $text:literal $(, $value:expr)*;)+
    }) => {
        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $(Self::$variant $({ $($field),+ })? $(($inner))? => write!(f, $text $(, $value)*),)+
                }
            }
        }
    };
}

/// Implements `Error` for an error of which these variants wrap another, and `From` for each of
/// these. The text has that of the error within, so that is not the source, too.
macro_rules! wraps {
    ($error:ident { $($variant:ident($inner:ty)),+ }) => {
        impl core::error::Error for $error {}

        $(impl From<$inner> for $error {
            fn from(error: $inner) -> Self {
                Self::$variant(error)
            }
        })+
    };
}

/// Returns the error of the first condition that holds.
macro_rules! error_if {
    ($($is_wrong:expr => $error:expr;)+) => { $(if $is_wrong { return Err($error); })+ };
}

pub(crate) use {error_if, texts, wraps};
