use crate::Folder;

#[test]
fn shells_get_their_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let told = Folder::new(&[]).run(&["completions", shell]);
        assert!(
            told.starts_with("exit 0\n--- stdout\n") && told.contains("comporta"),
            "{told}"
        );
    }
}

#[test]
fn the_version_is_the_same_however_it_is_asked_for() {
    let folder = Folder::new(&[]);
    let version = format!("exit 0\n--- stdout\ncomporta {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(folder.run(&["--version"]), version);
    assert_eq!(folder.run(&["-V"]), version);
}
