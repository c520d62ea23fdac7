//! [`Framework`]: the head of a request as a web framework has it.

use tollgate_address::Peer;

/// A web framework: the head of a request in its types. The crates for tower and actix-web implement
/// it. [`Extractor`](super::Extractor) has an example.
pub trait Framework: Sized + 'static {
    /// The head of a request.
    type Head<'a>: Copy;

    /// The target of a request. Its clones share their text.
    type Uri: Clone;

    /// The name of a header field.
    type Name: Clone + AsRef<str>;

    /// The value of a header field.
    type Value: AsRef<[u8]> + 'static;

    /// The values of a header field, in order.
    type Values<'h>: DoubleEndedIterator<Item = &'h Self::Value>;

    /// The part of the head that knows the peer.
    type Connection: ?Sized;

    /// The method.
    fn method<'h>(head: &'h Self::Head<'_>) -> &'h str;

    /// The target.
    fn uri<'h>(head: &'h Self::Head<'_>) -> &'h Self::Uri;

    /// The path of a target.
    fn path(uri: &Self::Uri) -> &str;

    /// The host of a request: of its target, else of its header field `host`, if it has one such.
    fn host<'h>(head: &'h Self::Head<'_>) -> Option<&'h str>;

    /// The name with this text; `None` if no header field can have it.
    fn name(text: &str) -> Option<Self::Name>;

    /// The values of the header field with this name.
    fn values<'h>(head: &'h Self::Head<'_>, name: &Self::Name) -> Self::Values<'h>;

    /// The part of the head that knows the peer.
    fn connection<'h>(head: &'h Self::Head<'_>) -> &'h Self::Connection;

    /// The peer: as outer middleware inserts it, else as the server provides it.
    fn peer(connection: &Self::Connection) -> Option<Peer>;
}

/// A framework whose requests can have an extension of this type.
pub trait HasExtension<E>: Framework {
    /// Passes the extension to `look`; `None` if the request has none.
    fn extension<R>(head: &Self::Head<'_>, look: impl FnOnce(&E) -> R) -> Option<R>;
}
