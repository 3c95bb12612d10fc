//! A test of single texts as a function over columns of any text layout.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// A test of one text. Equal tests compute the same, so that the engine may share their results.
pub trait TextTest: Debug + Eq + Hash + Send + Sync + 'static {
    /// The function's name in plans.
    const NAME: &'static str;

    /// What the test needs while it runs over one array: scratch space, caches.
    type Run<'a>;

    /// Prepares for one array.
    fn begin(&self) -> Self::Run<'_>;

    /// Whether the text passes. The bytes are valid UTF-8.
    fn passes(run: &mut Self::Run<'_>, text: &[u8]) -> bool;
}

/// The expression that tests a text column: TRUE, FALSE, or NULL for a null.
pub fn holds<T: TextTest>(test: T, column: Expr) -> Expr {
    let function = TextFunction {
        test,
        signature: Signature::new(TypeSignature::Any(1), Volatility::Immutable),
    };
    ScalarUDF::new_from_impl(function).call(vec![column])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextFunction<T: TextTest> {
    test: T,
    signature: Signature,
}

impl<T: TextTest> ScalarUDFImpl for TextFunction<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(Arc::new(evaluate(&self.test, array)?))),
            [ColumnarValue::Scalar(value)] => {
                let tested = evaluate(&self.test, &value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::Boolean(
                    tested.is_valid(0).then(|| tested.value(0)),
                )))
            }
            other => exec_err!("{} takes one text, not {} arguments", T::NAME, other.len()),
        }
    }
}

/// Tests every text of an array; a null stays null.
pub(super) fn evaluate<T: TextTest>(test: &T, array: &ArrayRef) -> Result<BooleanArray> {
    match array.data_type() {
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            Ok(each(test, array, |row| texts.value(row).as_bytes()))
        }
        DataType::LargeUtf8 => {
            let texts = array.as_string::<i64>();
            Ok(each(test, array, |row| texts.value(row).as_bytes()))
        }
        DataType::Utf8View => {
            let texts = array.as_string_view();
            Ok(each(test, array, |row| texts.value(row).as_bytes()))
        }
        DataType::Dictionary(..) => of_dictionary(test, array),
        DataType::RunEndEncoded(_, values) => evaluate(test, &cast(array, values.data_type())?),
        DataType::Null => Ok(BooleanArray::new_null(array.len())),
        other => exec_err!("{} is for text, not {other}", T::NAME),
    }
}

/// Each value of the dictionary is tested once, unless it holds more values than there are rows (a slice of a
/// larger array).
fn of_dictionary<T: TextTest>(test: &T, array: &ArrayRef) -> Result<BooleanArray> {
    let dictionary = array.as_any_dictionary();
    if dictionary.values().len() > array.len() {
        return evaluate(test, &take(dictionary.values(), dictionary.keys(), None)?);
    }
    let tested = evaluate(test, dictionary.values())?;
    Ok(take(&tested, dictionary.keys(), None)?.as_boolean().clone())
}

fn each<'t, T: TextTest>(test: &T, array: &ArrayRef, text: impl Fn(usize) -> &'t [u8]) -> BooleanArray {
    let mut run = test.begin();
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let bits = match nulls {
        None => BooleanBuffer::collect_bool(array.len(), |row| T::passes(&mut run, text(row))),
        Some(nulls) => known_rows(nulls, |row| T::passes(&mut run, text(row))),
    };
    BooleanArray::new(bits, nulls.cloned())
}

/// What stands under a null is not looked at.
fn known_rows(nulls: &NullBuffer, mut passes: impl FnMut(usize) -> bool) -> BooleanBuffer {
    let mut bits = BooleanBufferBuilder::new(nulls.len());
    bits.append_n(nulls.len(), false);
    for row in nulls.valid_indices() {
        if passes(row) {
            bits.set_bit(row, true);
        }
    }
    bits.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::length::Characters;
    use arrow::array::{DictionaryArray, Int32Array, LargeStringArray, StringArray, StringViewArray};
    use arrow::datatypes::Int32Type;

    fn two_signs() -> Characters {
        Characters {
            min: Some(2),
            max: Some(2),
        }
    }

    #[test]
    fn every_layout_of_text_gives_the_same_answer_and_nulls_stay() {
        let texts = [Some("ab"), None, Some("éé"), Some("abc"), Some("")];
        let expected = BooleanArray::from(vec![Some(true), None, Some(true), Some(false), Some(false)]);
        let coded: DictionaryArray<Int32Type> = texts.into_iter().collect();
        let layouts: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(texts.to_vec())),
            Arc::new(LargeStringArray::from(texts.to_vec())),
            Arc::new(StringViewArray::from(texts.to_vec())),
            Arc::new(coded.clone()),
        ];
        for layout in layouts {
            assert_eq!(
                evaluate(&two_signs(), &layout).unwrap(),
                expected,
                "{:?}",
                layout.data_type()
            );
            let sliced = evaluate(&two_signs(), &layout.slice(1, 2)).unwrap();
            assert_eq!(sliced, expected.slice(1, 2), "{:?}", layout.data_type());
        }
    }

    #[test]
    fn a_null_inside_a_dictionary_is_null() {
        let values: ArrayRef = Arc::new(StringArray::from(vec![Some("ab"), None]));
        let coded = DictionaryArray::new(Int32Array::from(vec![Some(0), Some(1), None]), values);
        let tested = evaluate(&two_signs(), &(Arc::new(coded) as ArrayRef)).unwrap();
        assert_eq!(tested, BooleanArray::from(vec![Some(true), None, None]));
    }

    #[test]
    fn other_types_are_an_error() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        assert!(evaluate(&two_signs(), &numbers).is_err());
    }
}
