//! Tables and files: reading them, and making rows visible in one step.

pub mod read;
pub mod remote;
pub mod write;
