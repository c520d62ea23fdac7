//! One decision, to step through with a debugger. `docs/internals.md` lists the files that it comes
//! to.
//!
//! ```sh
//! cargo build --example step_through
//! gdb -ex 'break step_through.rs:18' -ex run target/debug/examples/step_through
//! ```

use tollgate::{BuildError, Limiter, Quota};

fn main() -> Result<(), BuildError> {
    let limiter = Limiter::<String>::new(Quota::per_minute(100))?;
    // The key is known, and its ring has a free slot.
    for _ in 0..3 {
        let _ = limiter.try_acquire("alice");
    }
    // The one to step through.
    let decision = limiter.try_acquire("alice");
    assert!(decision.is_admitted());
    Ok(())
}
