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
