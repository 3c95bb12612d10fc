//! `format`

use crate::conditions::{format_of, has_format, is_format_of_type};
use crate::formats;
use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

/// Every text is of a known format, by meaning and not only by shape.
///
/// A date is one of the calendar, an address one that can exist, a number with check digits has the right ones and
/// may be written with its usual punctuation. The formats: `boolean`, `cep`, `cnpj`, `cpf`, `credit_card`, `date`,
/// `decimal`, `dni`, `ean13`, `email`, `hostname`, `iban`, `integer`, `ip`, `ipv4`, `ipv6`, `isbn`, `iso_3166`,
/// `iso_4217`, `json`, `mac`, `nie`, `nif`, `phone`, `rut`, `time`, `timestamp`, `url`, `uuid`. A null is unknown.
///
/// ## Why it matters
/// A tax number with a wrong digit looks like a tax number to every pattern and belongs to somebody else.
///
/// ## Example
/// ```yaml
/// - format: { column: tax_number, is: cpf }
/// ```
///
/// ## Holds
/// | tax_number     |
/// |----------------|
/// | 529.982.247-25 |
/// | 52998224725    |
/// | null           |
///
/// ## Broken
/// | tax_number     | broken |
/// |----------------|--------|
/// | 529.982.247-25 | no     |
/// | 529.982.247-26 | yes    |
/// | 111.111.111-11 | yes    |
/// | null           | no     |
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatParameters {
    /// The column; of a list, each by itself.
    column: Option<OneOrMany>,
    /// The same, in the plural.
    columns: Option<OneOrMany>,
    /// The name of the format.
    is: String,
}

/// The rule.
#[derive(Debug, Clone)]
pub struct Format {
    column: String,
    format: formats::Format,
}

impl RuleDefinition for Format {
    const NAME: &'static str = "format";
    const FAMILY: Family = Family::Domain;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Validity;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(found) = shapes::parameters::<FormatParameters>(node, diagnostics) else {
            return Vec::new();
        };
        let columns = shapes::named_columns([found.column, found.columns], node, diagnostics);
        let Some(format) = node.get("is").and_then(|name| format_of(name, diagnostics)) else {
            return Vec::new();
        };
        debug_assert_eq!(format.name, found.is);
        columns.into_iter().map(|column| Format { column, format }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        FormatParameters::json_schema(generator)
    }
}

impl Rule for Format {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({ "is": self.format.name })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = scope.column(&self.column)?;
        let by_type = is_format_of_type(self.format, &column.data_type);
        // Only a column of the file itself has cells that could not be read.
        let holds = match by_type && scope.schema.field_with_name(&column.name).is_ok() {
            true => Holds::CellParses {
                column: column.name.clone(),
            },
            false => Holds::Expr(has_format(&column, self.format)?),
        };
        Ok(Bound::Row(RowCheck {
            reason: format!("`{}` is {{value}}, which is not {}", column.name, self.format.noun),
            holds,
        }))
    }
}
