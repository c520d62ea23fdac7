//! The account of one key.

use super::account_view::AccountView;
use crate::cell::store::Store;

/// The account of one key: a bucket, a queue or a counter.
#[derive(Clone, Copy)]
pub(in crate::cell) struct Counter<'a> {
    pub(in crate::cell) store: &'a Store,
    pub(in crate::cell) view: AccountView<'a>,
}
