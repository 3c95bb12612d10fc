//! Places at which a test can kill the program, to prove that a run killed there and run again ends like
//! one clean run.

/// Aborts the process if the environment names this point in `COMPORTA_FAULT`.
///
/// It does nothing in builds without debug assertions: what is handed out cannot be made to die.
pub fn point(name: &str) {
    if cfg!(debug_assertions) && std::env::var_os("COMPORTA_FAULT").is_some_and(|wanted| wanted == name) {
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_point_that_nobody_named_does_nothing() {
        super::point("a point that no test names");
    }
}
