use tollgate::{Denial, rate_limit};

#[rate_limit(limit = 5, per = "10s")]
struct NoFunction;

#[rate_limit(limit = 5, per = "10s")]
const fn constant() -> Result<(), Denial> {
    Ok(())
}

trait Greeter {
    #[rate_limit(limit = 5, per = "10s")]
    fn greet(&self) -> Result<(), Denial>;
}

#[rate_limit(limit = 5, per = "10s")]
fn nothing_returned() {}

#[rate_limit(limit = 5, per = "10s")]
fn reference_returned() -> &'static str {
    "text"
}

#[rate_limit(limit = 5, per = "10s")]
async fn opaque_returned() -> impl Iterator<Item = u8> {
    std::iter::empty()
}

#[rate_limit(limit = 5, per = "10s", cost = cost, on_denied = |_| ())]
fn nothing_returned_on_error(cost: u32) {
    drop(cost);
}

fn main() {
    // The function is there as well, so that there is no second message.
    nothing_returned();
}
