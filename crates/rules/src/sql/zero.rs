//! Negative zero. The engine's comparison of floats is a total order in which -0.0 is below 0.0; in SQL the two
//! are equal. Adding 0.0 turns the one into the other and leaves everything else, NaN included, as it is.

use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{Between, BinaryExpr, InList};
use datafusion_expr::{Expr, ExprSchemable as _, Operator, lit};

/// The same expression, in which comparisons of floats see one zero.
pub(super) fn normalized(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let changed = expr.transform_up(|node| {
        Ok(match node {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
                let keep_left = is_nonzero(&right);
                let keep_right = is_nonzero(&left);
                Transformed::yes(Expr::BinaryExpr(BinaryExpr {
                    left: Box::new(if keep_left { *left } else { one_zero(*left, schema) }),
                    op,
                    right: Box::new(if keep_right { *right } else { one_zero(*right, schema) }),
                }))
            }
            Expr::Between(between) => Transformed::yes(Expr::Between(Between {
                expr: Box::new(one_zero(*between.expr, schema)),
                negated: between.negated,
                low: Box::new(one_zero(*between.low, schema)),
                high: Box::new(one_zero(*between.high, schema)),
            })),
            Expr::InList(list) => Transformed::yes(Expr::InList(InList {
                expr: Box::new(one_zero(*list.expr, schema)),
                list: list.list.into_iter().map(|member| one_zero(member, schema)).collect(),
                negated: list.negated,
            })),
            other => Transformed::no(other),
        })
    })?;
    Ok(changed.data)
}

/// A float with one zero; anything else as it is.
fn one_zero(expr: Expr, schema: &DFSchema) -> Expr {
    if matches!(expr, Expr::Literal(..)) {
        return expr;
    }
    match expr.get_type(schema) {
        Ok(DataType::Float64) => expr + lit(0.0_f64),
        Ok(DataType::Float32) => expr + lit(0.0_f32),
        _ => expr,
    }
}

fn compares(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

fn is_nonzero(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value
            .cast_to(&DataType::Float64)
            .is_ok_and(|value| matches!(value, ScalarValue::Float64(Some(number)) if number != 0.0)),
        _ => false,
    }
}
