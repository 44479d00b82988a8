//! Error paths of a program, here `ibv_devinfo`: each test runs it under softverbs with rules.
use std::process::{Command, Output};

fn run(rules: &str, name: &str) -> Output {
    let place = std::env::temp_dir().join(format!("softverbs-{}-{}", std::process::id(), name));
    let done = Command::new("softverbs")
        .args(["run", "--log", "warn", "--inject", rules, "--", "ibv_devinfo"].iter())
        .env("SOFTVERBS_DIR", &place) // tests run side by side: each has processes of its own
        .output()
        .expect("softverbs is not installed");
    let _ = std::fs::remove_dir_all(&place);
    done
}

#[test]
fn a_device_that_fails_is_reported() {
    let done = run("when ibv_open_device: error EIO", "device");
    assert!(!done.status.success());
    assert!(String::from_utf8_lossy(&done.stderr).contains("ibv_open_device of device 0: fails with EIO"));
}

#[test]
fn a_port_that_is_down_is_shown() {
    let done = run("when ibv_query_port: set state DOWN", "port");
    assert!(String::from_utf8_lossy(&done.stdout).contains("PORT_DOWN"));
}
