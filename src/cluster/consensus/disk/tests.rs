//! Rules of the data directory.

use super::*;

#[test]
fn a_newer_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::open(directory.path(), "orders", "db-0").unwrap();
    let newer = Identity { format: FORMAT + 1, ..disk.identity.clone() };
    disk.write(|transaction| checked::put(&mut transaction.open_table(META)?, IDENTITY, &newer)).unwrap();
    drop(disk);
    let refused = Disk::open(directory.path(), "orders", "db-0").unwrap_err().to_string();
    assert!(
        refused.contains("has format 2, and this program knows formats up to 1; run the newer program"),
        "{refused}"
    );
}

#[test]
fn every_new_directory_gets_its_own_node_id_and_keeps_it() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let node = |directory: &Path| Disk::open(directory, "orders", "db-0").unwrap().identity.node;
    assert_ne!(node(first.path()), node(second.path()));
    assert_eq!(node(first.path()), node(first.path()));
    assert_ne!(node(first.path()), 0);
}

#[test]
fn a_directory_is_open_once_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::open(directory.path(), "orders", "db-0").unwrap();
    assert!(matches!(Disk::open(directory.path(), "orders", "db-0"), Err(OpenError::InUse { .. })));
    drop(disk);
    Disk::open(directory.path(), "orders", "db-0").unwrap();
}

#[test]
fn a_directory_that_another_process_is_making_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let other = File::create(directory.path().join(LOCK)).unwrap();
    other.lock().unwrap();
    assert!(matches!(Disk::open(directory.path(), "orders", "db-0"), Err(OpenError::InUse { .. })));
    assert!(!directory.path().join(FILE).exists());
}
