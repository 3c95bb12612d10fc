use crate::Folder;
use std::process::Stdio;

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    for arguments in [
        vec!["schema", "pipeline"],
        vec!["--help"],
        vec!["rules"],
        vec!["completions", "zsh"],
    ] {
        let mut child = Folder::new(&[])
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn a_full_disk_under_the_result_is_said() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        return;
    };
    let output = Folder::new(&[])
        .command(&["rules"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: writing to standard output"));
}
