//! What to say of a log whose every request costs more than can ever be granted.

use crate::log::Log;
use crate::plan::{Plan, quota_in_words};
use crate::terminal;
use crate::text::excerpt;
use crate::words::human;

/// Says on standard error that the costs look wrong, and which quotas they exceed.
pub(crate) fn complain(log: &Log, plan: &Plan, cost_column: Option<&str>) {
    let costs = || log.events().map(|event| event.cost);
    let (Some(least), Some(most)) = (costs().min(), costs().max()) else { return };
    let exceeded: Vec<String> = plan.quotas().filter(|quota| quota.limit() < most).map(quota_in_words).collect();
    let column = excerpt(cost_column.unwrap_or_default().as_bytes());
    terminal::complain(&format!(
        "every request costs more than can ever be granted by {}: the costs in the column {column} go from {} to {}; \
         look whether --cost-column names the right column",
        exceeded.join(" and "),
        human(least.into()),
        human(most.into()),
    ));
}
