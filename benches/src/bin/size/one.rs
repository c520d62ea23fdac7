//! The same program with one limiter, by a quota of the default algorithm.

use tollgate::{BuildError, Limiter, Quota};

fn main() -> Result<(), BuildError> {
    let limiter = Limiter::<String>::new(Quota::per_minute(100))?;
    let admitted = std::env::args().filter(|key| limiter.try_acquire(key).is_admitted()).count();
    println!("{admitted}");
    Ok(())
}
