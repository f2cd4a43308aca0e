//! Stoppers on processes of our own.

use super::*;

#[test]
fn kinds_are_read_as_they_are_written() {
    for kind in StopperKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    let wrong = "freeze".parse::<StopperKind>().unwrap_err().to_string();
    assert!(wrong.contains("cgroup2_freeze"), "{wrong}");
}
