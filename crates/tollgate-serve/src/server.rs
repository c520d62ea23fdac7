//! [`Server`]: a policy over HTTP and gRPC.

use core::time::Duration;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::HeaderName;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
#[cfg(feature = "redis")]
use tollgate::{Algorithm, Quota};
use tollgate::{AnyClock, InstantClock, Snapshot};
use tollgate_policy::{Key, Policy, RequestLimiter};
#[cfg(feature = "redis")]
use tollgate_redis::{RedisJointLimiter, Store};

use crate::connection::{Connections, Phase, Socket};
use crate::counts::Counts;
use crate::error::ServeError;
use crate::fields::{Field, Fields};
use crate::guard::Guard;
use crate::held::Held;
use crate::hosts::Hosts;
use crate::limiter::{InProcess, Limiter, in_process, shared};
use crate::listen::Listen;
use crate::routes::Routes;
use crate::snapshot_file;

/// A server of the limits of a policy, before it listens. See [the crate](crate) for what it
/// answers.
///
/// ```
/// use tollgate_policy::{Key, Policy, Requests};
/// use tollgate_serve::{Listen, Server};
///
/// let policy = Policy::from_toml(r#"
///     [[dimension]]
///     name = "address"
///     key = ["client"]
///     quota = [{ limit = 100, per = "1m" }]
///
///     [[dimension]]
///     name = "user"
///     quota = [{ limit = 10, per = "1s" }]
/// "#)?;
/// let server = Server::new(policy).address("client")?.header("user", "x-api-key")?.optional("user")?;
///
/// let runtime = tokio::runtime::Runtime::new()?;
/// runtime.block_on(async {
///     let bound = server.bind(&["127.0.0.1:0".parse::<Listen>()?]).await?;
///     println!("listening on {}", bound.listens()[0]);
///     // A service waits for a signal here.
///     bound.run(async {}).await
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    policy: Policy,
    fields: Fields,
    hosts: Hosts,
    clock: Option<AnyClock>,
    snapshot: Option<PathBuf>,
    most: usize,
    patience: Duration,
    grace: Duration,
}

/// A server that listens.
#[derive(Debug)]
pub struct Bound {
    sockets: Vec<Socket>,
    listens: Vec<Listen>,
    connections: Arc<Connections>,
    guard: Arc<Guard>,
    snapshot: Option<PathBuf>,
    restored: Option<usize>,
    grace: Duration,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Whether connections were cut off because they did not end in time.
    pub cut_off: bool,
    /// The keys in the snapshot, if one was written.
    pub saved: Option<usize>,
}

impl Server {
    /// A server of this policy, for 1,024 connections, with 10 seconds for a head, for a body and
    /// for the end.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let fields = Fields::of(&policy);
        let patience = Duration::from_secs(10);
        let hosts = Hosts::default();
        Self { policy, fields, hosts, clock: None, snapshot: None, most: 1_024, patience, grace: patience }
    }

    /// The header field with the value of this field, for `/auth_request`, `/authz` and `Check`. By
    /// default, the first two read `x-tollgate-` and the name of the field, and `Check` reads none. All
    /// three read a field `header.NAME` from that header field of the request.
    ///
    /// # Errors
    ///
    /// [`ServeError`] when the policy has no such field, or no header field can have the name.
    pub fn header(mut self, field: &str, name: &str) -> Result<Self, ServeError> {
        let header = HeaderName::try_from(name).map_err(|_| ServeError::HeaderName { name: name.to_owned() })?;
        let field = self.field(field)?;
        field.header = Some(header);
        field.is_named = true;
        Ok(self)
    }

    /// The values of this field are addresses of clients, and other texts are refused. The field
    /// `client` has such values without this, too; another text there stands for itself.
    ///
    /// A value is the address of the peer, or a list of addresses that ends with it, as proxies
    /// write it in front. [`Policy::client`] says which of them is the client's, and what network of
    /// IPv6 is one key. Wider networks get limits of their own, too, as
    /// [`Policy::with_network_limits`] says.
    ///
    /// # Errors
    ///
    /// [`ServeError::UnknownField`] when the policy has no such field.
    pub fn address(mut self, field: &str) -> Result<Self, ServeError> {
        let clients = self.policy.client().clone();
        self.field(field)?.set_address(clients);
        Ok(self)
    }

    /// Requests may lack this field. Then the dimensions with it are not asked. A request that lacks
    /// another field of a dimension that it is asked of is refused, and so is one without the fields of
    /// all of these.
    ///
    /// # Errors
    ///
    /// [`ServeError::UnknownField`] when the policy has no such field.
    pub fn optional(mut self, field: &str) -> Result<Self, ServeError> {
        self.field(field)?.is_optional = true;
        Ok(self)
    }

    /// A name by which requests call this server, as `Host` or `:authority` has it, without a port.
    /// `.example.com` stands for `example.com` and all names under it, `*` for any name.
    ///
    /// Without this, they call it `localhost`, a name under that, or any IP address. Other requests
    /// are answered with 421: such a name may belong to a page in a browser. On a Unix socket, which
    /// no page reaches, any name does.
    ///
    /// ```
    /// use tollgate_policy::{Key, Policy, Requests};
    /// use tollgate_serve::Server;
    ///
    /// let policy = Policy::from_toml("[[dimension]]\nname = \"user\"\nquota = [{ limit = 5, per = \"1m\" }]")?;
    /// let server = Server::new(policy).host("tollgate")?.host(".example.com")?;
    /// # drop(server);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ServeError::Host`] when no host can have the name.
    pub fn host(mut self, name: &str) -> Result<Self, ServeError> {
        self.hosts.add(name)?;
        Ok(self)
    }

    /// The clock of the limits, for tests. On a store it counts from 1970.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<AnyClock>) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// Reads this snapshot at the start, if the file is there, and writes it at the end. Whether it can
    /// be written is seen at the start. Files that killed saves have left beside it, a minute or more
    /// ago, are removed.
    #[must_use]
    pub fn snapshot(mut self, path: impl Into<PathBuf>) -> Self {
        self.snapshot = Some(path.into());
        self
    }

    /// The most connections at a time. A connection beyond is told so and closed.
    #[must_use]
    pub const fn max_connections(mut self, connections: usize) -> Self {
        self.most = connections;
        self
    }

    /// The time for the head of a request to come, and for its body. A connection of HTTP/1.1 that is
    /// idle for that time is closed.
    #[must_use]
    pub const fn time_for_requests(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// The time that connections have to end when the server stops.
    #[must_use]
    pub const fn time_to_stop(mut self, time: Duration) -> Self {
        self.grace = time;
        self
    }

    fn field(&mut self, name: &str) -> Result<&mut Field, ServeError> {
        let known = self.fields.in_words();
        self.fields.find(name).ok_or_else(|| ServeError::UnknownField { field: name.to_owned(), known })
    }

    /// Builds the limiter, reads the snapshot, and listens.
    ///
    /// # Errors
    ///
    /// [`ServeError`] when the options make no sense, the snapshot can't be used, or an address
    /// can't be listened on.
    pub async fn bind(mut self, listens: &[Listen]) -> Result<Bound, ServeError> {
        self.policy = self.policy.with_network_limits(|field| self.fields.is_address(field));
        self.fields.set_dimensions(&self.policy);
        if listens.is_empty() {
            return Err(ServeError::NothingToListenOn);
        }
        if let Some(field) = self.fields.list().iter().find(|field| field.header.is_none()) {
            return Err(ServeError::NoHeader { field: field.name.clone() });
        }
        if let Some(field) = self.fields.wrong_network() {
            return Err(ServeError::Network { field: field.to_owned() });
        }
        let most = u32::try_from(self.most).ok().filter(|most| (1..=1_000_000).contains(most));
        let most = most.ok_or(ServeError::Connections { connections: self.most })?;
        let (limiter, restored) = self.limiter()?;
        let limiter = Arc::new(limiter);
        let tier = |dimension: usize, name: &str| in_process(&limiter)?.tier(dimension, name);
        let limiter = RequestLimiter::new(&self.policy, Arc::clone(&limiter), tier);
        let counts = Counts::new(&self.policy).map_err(ServeError::Policy)?;
        let held = shared(limiter.limiter()).and_then(|limiter| Held::new(&self.policy, limiter));
        let guard = Arc::new(Guard::new(&limiter, self.fields, counts, held));
        let routes = Routes::new(Arc::clone(&guard), self.hosts, self.patience);
        let connections = Arc::new(Connections::new(routes, most, self.patience));
        let (mut sockets, mut bound) = (Vec::new(), Vec::new());
        for listen in listens {
            let (socket, listen) =
                bind(listen).await.map_err(|error| ServeError::Bind { address: listen.to_string(), error })?;
            sockets.push(socket);
            bound.push(listen);
        }
        let Self { snapshot, grace, .. } = self;
        Ok(Bound { sockets, listens: bound, connections, guard, snapshot, restored, grace })
    }

    /// The limiter, and the number of keys that the snapshot had.
    fn limiter(&self) -> Result<(Limiter, Option<usize>), ServeError> {
        #[cfg(feature = "redis")]
        if self.policy.store().is_some() {
            return Ok((self.limiter_on_store()?.into(), None));
        }
        let (limiter, restored) = self.limiter_in_process()?;
        #[cfg(feature = "redis")]
        let limiter = limiter.into();
        Ok((limiter, restored))
    }

    #[cfg(feature = "redis")]
    fn limiter_on_store(&self) -> Result<RedisJointLimiter, ServeError> {
        let is_queue = |quota: &Quota| quota.algorithm() == Algorithm::LeakyQueue;
        let queue = self.policy.dimensions().iter().find(|dimension| dimension.all_quotas().any(is_queue));
        if let Some(dimension) = queue {
            return Err(ServeError::QueueOnStore { dimension: dimension.name().to_owned() });
        }
        if self.snapshot.is_some() {
            return Err(ServeError::SnapshotOfStore);
        }
        let mut store = Store::from_policy(&self.policy).map_err(ServeError::Store)?;
        if let Some(clock) = &self.clock {
            store = store.log_clock(clock.clone());
        }
        let store = store.build().map_err(ServeError::Store)?;
        let limiter = RedisJointLimiter::from_policy_on(&store, &self.policy).map_err(ServeError::Store)?;
        limiter.build().map_err(ServeError::Store)
    }

    fn limiter_in_process(&self) -> Result<(InProcess, Option<usize>), ServeError> {
        let builder = self.policy.builder_of_requests::<[Key]>().map_err(ServeError::InProcess)?;
        let builder = builder.clock(self.clock.clone().unwrap_or_else(|| InstantClock::new().into()));
        let Some(path) = &self.snapshot else {
            return Ok((builder.build().map_err(ServeError::Build)?, None));
        };
        snapshot_file::check(path).map_err(ServeError::SnapshotUnwritten)?;
        match Snapshot::load(path) {
            Ok(snapshot) => {
                let limiter = builder.restore(&snapshot);
                let limiter = limiter.map_err(|error| ServeError::Restore { path: path.clone(), error })?;
                Ok((limiter, Some(snapshot.len())))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok((builder.build().map_err(ServeError::Build)?, None))
            }
            Err(error) => Err(ServeError::SnapshotUnread(error)),
        }
    }
}

async fn bind(listen: &Listen) -> io::Result<(Socket, Listen)> {
    match listen {
        Listen::Tcp(address) => {
            let listener = TcpListener::bind(address).await?;
            let bound = Listen::Tcp(listener.local_addr()?);
            Ok((Socket::Tcp(listener), bound))
        }
        Listen::Unix(path) => {
            if is_left_behind(path).await {
                std::fs::remove_file(path)?;
            }
            Ok((Socket::Unix(UnixListener::bind(path)?), listen.clone()))
        }
    }
}

/// Whether there is a socket on which no server listens any more.
async fn is_left_behind(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if !is_socket {
        return false;
    }
    let connected = tokio::net::UnixStream::connect(path).await;
    connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

impl Bound {
    /// Where the server listens, with the port that it got.
    #[must_use]
    pub fn listens(&self) -> &[Listen] {
        &self.listens
    }

    /// The keys that were read from the snapshot; `None` if there was none.
    #[must_use]
    pub const fn restored(&self) -> Option<usize> {
        self.restored
    }

    /// Serves until `stop` is over. Then it takes no new connections, lets those that are open
    /// answer the request that they have, and writes the snapshot.
    ///
    /// # Errors
    ///
    /// [`ServeError::SnapshotUnwritten`]. The old snapshot is unchanged then.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<Stopped, ServeError> {
        let (signal, phase) = watch::channel(Phase::Open);
        let mut accepting = JoinSet::new();
        for socket in self.sockets {
            accepting.spawn(Arc::clone(&self.connections).accept(socket, phase.clone()));
        }
        stop.await;
        signal.send_replace(Phase::Closing);
        while accepting.join_next().await.is_some() {}
        let all = self.connections.most();
        let ended = timeout(self.grace, self.connections.places.acquire_many(all)).await;
        signal.send_replace(Phase::Closed);
        let cut_off = ended.is_err();
        drop(ended);
        // Those that are cut off end at once.
        let _ = self.connections.places.acquire_many(all).await;
        for listen in &self.listens {
            if let Listen::Unix(path) = listen {
                let _ = std::fs::remove_file(path);
            }
        }
        let limiter = self.guard.limiter();
        #[cfg(feature = "redis")]
        if let Some(limiter) = limiter.on_store() {
            // What is not given back counts until its window is over.
            let _ = timeout(self.grace, limiter.give_back_leases()).await;
        }
        let mut saved = None;
        if let (Some(limiter), Some(path)) = (in_process(limiter), self.snapshot) {
            let snapshot = limiter.snapshot();
            snapshot.save(path).map_err(ServeError::SnapshotUnwritten)?;
            saved = Some(snapshot.len());
        }
        Ok(Stopped { cut_off, saved })
    }
}
