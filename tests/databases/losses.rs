//! A loss is detected where there is a loss: otherwise a report of no loss would mean nothing.

use super::postgresql::Postgresql;
use super::stage::{Kind, Stage};
use super::trio::{System as _, is_installed};
use super::writers::Writers;

#[tokio::test]
async fn writes_that_no_other_member_has_are_lost_with_the_primary() {
    crate::left_out::long!();
    if !is_installed::<Postgresql>() {
        return;
    }
    let mut stage = Stage::<Postgresql>::bare().await;
    let writers = Writers::start::<Postgresql>(&stage.trio);
    let others = [1, 2];
    for place in others {
        stage.take_away(Kind::Reboot, place);
    }
    writers.go_on();
    stage.take_away(Kind::Redeploy, 0);
    for place in others {
        Postgresql::boot(&stage.trio, place);
    }
    Postgresql::promote(&stage.trio, &others);
    let cost = stage.what_is_left(writers);
    assert!(cost.lost > 0, "{} writes were acknowledged, and none is lost", cost.acknowledged);
}
