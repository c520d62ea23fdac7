//! An application with one limiter type, and a test of it that sets the time.
//!
//! ```text
//! in the service: true
//! in a test: true, then false, and true a minute later
//! ```

use std::time::Duration;

use tollgate::{AnyClock, BuildError, Limiter, MockClock, Quota};

struct App {
    logins: Limiter<String, AnyClock>,
}

impl App {
    fn new(clock: impl Into<AnyClock>) -> Result<Self, BuildError> {
        let logins = Limiter::builder(Quota::per_minute(1)).clock(clock.into()).build()?;
        Ok(Self { logins })
    }

    fn login(&self, user: &str) -> bool {
        self.logins.try_acquire(user).is_admitted()
    }
}

fn main() -> Result<(), BuildError> {
    let app = App::new(AnyClock::default())?;
    println!("in the service: {}", app.login("alice"));

    let clock = MockClock::new();
    let app = App::new(clock.clone())?;
    let (first, second) = (app.login("alice"), app.login("alice"));
    clock.advance(Duration::from_secs(60));
    println!("in a test: {first}, then {second}, and {} a minute later", app.login("alice"));
    Ok(())
}
