//! Only failed log-ins count. Each attempt is charged before the password is checked, and a right
//! password refunds it. So a client that hangs up during the check has used an attempt.
//!
//! The key is the user and the address: a limit by user alone would let anybody lock a user out.
//! `login_by_user` has a limit by address for all users as well.
//!
//! ```text
//! alice, "secret": 200
//! alice, "guess": 401
//! alice, "secret": 200
//! alice, "guess": 401
//! alice, "guess": 429
//! thirty clients hang up during the check of bob's password: 2 checks were started
//! ```

use std::cell::Cell;
use std::future::pending;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use tokio::time::timeout;
use tollgate::{Limiter, Quota};

struct Service {
    attempts: Limiter<(String, IpAddr)>,
    checks: Cell<u32>,
}

impl Service {
    async fn log_in(&self, user: &str, address: IpAddr, password: &str) -> u16 {
        // Charged at once. A reservation that is held during the check would be refunded when the
        // client hangs up.
        let Ok(attempt) = self.attempts.reserve((user, address), 1, Duration::ZERO) else { return 429 };
        let attempt = attempt.commit();
        if !self.is_right(password).await {
            return 401;
        }
        self.attempts.refund(attempt).map_or(500, |_| 200)
    }

    async fn is_right(&self, password: &str) -> bool {
        self.checks.set(self.checks.get() + 1);
        if password == "slow" {
            pending().await
        }
        password == "secret"
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), tollgate::BuildError> {
    let service = Service { attempts: Limiter::new(Quota::per_hour(2))?, checks: Cell::new(0) };
    let address = IpAddr::from(Ipv4Addr::new(192, 0, 2, 7));
    for password in ["secret", "guess", "secret", "guess", "guess"] {
        println!("alice, {password:?}: {}", service.log_in("alice", address, password).await);
    }
    service.checks.set(0);
    for _ in 0..30 {
        // The client hangs up, and the server drops the future.
        let _ = timeout(Duration::ZERO, service.log_in("bob", address, "slow")).await;
    }
    let checks = service.checks.get();
    println!("thirty clients hang up during the check of bob's password: {checks} checks were started");
    Ok(())
}
