//! What people read, of messages as replicas send them.
