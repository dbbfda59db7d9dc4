//! The way to one replica: where it is, and what stood in it last.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::attempts;
use super::name::{Found, Name};

/// Kept for as long as a replica is dialled at an address: what is known of its name outlives a connection.
pub struct Way {
    name: Arc<Name>,
    obstacle: Mutex<Option<String>>,
}

impl Way {
    /// To `host:port`.
    pub fn to(address: &str) -> Arc<Self> {
        Arc::new(Self { name: Arc::new(Name::new(address)), obstacle: Mutex::default() })
    }

    /// It may lead elsewhere when it is gone again.
    pub fn may_change(&self) -> bool {
        self.name.is_a_name()
    }

    /// Has its end looked up now and then, also when it is never gone.
    pub fn keep_up(&self) {
        self.name.keep_up();
    }

    /// Why it could not be gone the last time.
    pub fn obstacle(&self) -> Option<String> {
        self.obstacle.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Goes it: `attempt` is what is done at an address, until it has succeeded at one.
    ///
    /// # Errors
    /// What stands in the way.
    pub async fn go<T, F>(&self, attempt: impl Fn(SocketAddr) -> F) -> io::Result<T>
    where
        F: Future<Output = io::Result<T>>,
    {
        let gone = match self.name.addresses().await {
            Ok(Found { addresses, outdated: None }) => attempts::first(&addresses, attempt).await,
            Ok(Found { addresses, outdated: Some(why) }) => {
                let known: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                let gone = attempts::first(&addresses, attempt).await;
                gone.map_err(|error| io::Error::other(format!("{why}; at {}, as before: {error}", known.join(", "))))
            }
            Err(why) => Err(io::Error::other(why)),
        };
        let obstacle = gone.as_ref().err().map(ToString::to_string);
        *self.obstacle.lock().unwrap_or_else(PoisonError::into_inner) = obstacle;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_stood_in_the_way_is_told_until_it_could_be_gone() {
        let way = Way::to("127.0.0.1:1");
        assert!(!way.may_change() && Way::to("localhost:1").may_change());
        assert_eq!(way.obstacle(), None);
        assert!(way.go(async |_| Err::<(), _>(io::Error::other("nobody there"))).await.is_err());
        assert_eq!(way.obstacle().as_deref(), Some("nobody there"));
        way.go(async |_| Ok(())).await.unwrap();
        assert_eq!(way.obstacle(), None);
    }
}
