//! The inferred result types of an op, usually one.

use super::types::{Tensor, ValueType};
use std::ops::Deref;

/// The result types of an op.
#[derive(Debug)]
pub enum ResultTypes {
    /// The type of its only result.
    One(ValueType),
    /// The types of any number of results.
    Many(Vec<ValueType>),
}

impl Deref for ResultTypes {
    type Target = [ValueType];
    fn deref(&self) -> &[ValueType] {
        match self {
            Self::One(ty) => std::slice::from_ref(ty),
            Self::Many(types) => types,
        }
    }
}

impl From<Tensor> for ResultTypes {
    fn from(tensor: Tensor) -> Self {
        Self::One(tensor.into())
    }
}

impl From<ValueType> for ResultTypes {
    fn from(ty: ValueType) -> Self {
        Self::One(ty)
    }
}

impl FromIterator<ValueType> for ResultTypes {
    fn from_iter<I: IntoIterator<Item = ValueType>>(types: I) -> Self {
        let mut types = types.into_iter();
        match (types.next(), types.next()) {
            (None, _) => Self::Many(Vec::new()),
            (Some(only), None) => Self::One(only),
            (Some(first), Some(second)) => {
                Self::Many([first, second].into_iter().chain(types).collect())
            }
        }
    }
}
