//! Every rule there is. Adding one is a file under `rules/` and a line here, in the order of names.

use crate::rule::Definition;

macro_rules! rules {
    ($($module:ident :: $name:ident),+ $(,)?) => {
        static ALL: &[Definition] = &[$(Definition::of::<crate::rules::$module::$name>()),+];
    };
}

rules! {
    not_null::NotNull,
    range::Range,
    row_count::RowCount,
    unique::Unique,
}

/// All rules, in the order of their names.
pub fn all() -> &'static [Definition] {
    ALL
}

/// The rule of a name.
pub fn find(name: &str) -> Option<&'static Definition> {
    ALL.iter().find(|definition| definition.name == name)
}

/// The names of all rules.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|definition| definition.name).collect()
}
