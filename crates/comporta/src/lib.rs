//! The gate before publication: judges a batch against its rules, splits it, proves that nothing was lost, and
//! publishes it in one commit or not at all.

pub mod documents;
pub mod prepare;
pub mod schema;
pub mod secrets;
pub mod world;

pub use comporta_contract as contract;
pub use comporta_engine as engine;
pub use comporta_lake as lake;
pub use comporta_rules as rules;
pub use comporta_state as state;
