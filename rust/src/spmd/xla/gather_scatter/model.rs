//! The inputs of XLA's decisions about gathers and scatters: roles of dims, and the sharding of each tensor.

use super::super::super::digits::Digit;
use super::super::super::strategy::FactorDigits;

/// The role of a factor in a gather or scatter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// An explicit batch dim, of all tensors.
    Batch,
    /// A dim of the operand and of slices; slices cover it.
    Window,
    /// An indexed dim of the operand, from which slices take one element.
    Indexed,
    /// A dim of indices and slices.
    Index,
    /// Any other.
    Other,
}

/// A tensor: the operand, indices, or slices, which are the result of a gather and the updates of a scatter.
#[derive(Debug)]
pub struct Tensor {
    /// The factors of each dim.
    pub dims: Vec<Vec<usize>>,
    /// Its shape.
    pub shape: Vec<i64>,
    /// The bits of an element.
    pub bits: i64,
}

/// The inputs of the decision about a gather or scatter.
#[derive(Debug)]
pub struct Indexed {
    /// By factor.
    pub roles: Vec<Role>,
    /// The operand, indices, and slices.
    pub tensors: [Tensor; 3],
    /// Whether it is a scatter, whose result has the shape of the operand.
    pub is_scatter: bool,
    /// The digits of all devices, as reshards take them.
    pub devices: Vec<Digit>,
    /// The digits of all devices, split as those of tensors are.
    pub parts: Vec<Digit>,
}

pub(super) const OPERAND: usize = 0;
pub(super) const INDICES: usize = 1;
pub(super) const SLICES: usize = 2;

/// The shardings of tensors within a group of devices, and the digits along which groups are formed.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The digits of each factor, of the operand, indices, and slices.
    pub tensors: [FactorDigits; 3],
    /// The digits of each factor in the target sharding of the result.
    pub result: FactorDigits,
    /// The digits along which groups are formed, by factor: the strategy so far.
    pub strategy: FactorDigits,
}

/// One level of groups of devices, formed by a method.
pub(super) struct Level {
    /// The role of the factors along which it forms groups.
    pub role: Role,
    /// The digits of each factor along which it forms groups.
    pub along: FactorDigits,
    /// The state after that, including the levels before.
    pub groups: Groups,
}

impl Indexed {
    /// The role of the factors along which the result is partial.
    pub(super) const fn reduced(&self) -> Role {
        if self.is_scatter {
            Role::Index
        } else {
            Role::Indexed
        }
    }
}
