//! A node of the fusion graph.

use super::expression::Expression;
use super::users::Users;
use crate::index::{OpId, ValueId};

/// How a node takes part in fusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A block argument, a value captured from outside the block, or one of several results.
    Outside,
    /// An op that does not fuse: a kernel of its own, or no kernel at all.
    Apart,
    /// A bitcast of its operand.
    Bitcast,
    /// An op that can be fused into its users, and its producers into it.
    Fusible,
}

/// The size of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Its bytes, and those of an element.
    pub bytes: f64,
    pub element: f64,
}

/// An op of the block, or a value that is defined outside of it.
#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    /// The value that it defines; `None` for the copy of an operand.
    pub value: Option<ValueId>,
    /// Bytes of the result, those of them that are written, and those of an element.
    pub bytes: f64,
    pub written: f64,
    pub element: f64,
    /// Elements that its threads compute.
    pub launched: f64,
    /// Elements that it iterates over: for a reduction those of its operand.
    pub looped: f64,
    pub expression: Expression,
    /// The nodes that use it.
    pub users: Users,
    /// Whether it is fused into some user.
    pub is_fused: bool,
    /// Whether it is fused into all of its users.
    pub is_gone: bool,
    /// Whether it is the last step of a reduction in two steps.
    pub is_last_step: bool,
    /// The product that it computes, if it is the kernel of one.
    pub product: Option<OpId>,
    /// Blocks of threads of the kernel, threads in each, and its seconds, as last measured.
    pub launch: (f64, f64),
    pub seconds: f64,
}

impl Node {
    /// A node of an array of no bytes.
    pub fn new(kind: Kind, value: Option<ValueId>, expression: Expression) -> Self {
        let [bytes, written, element, seconds] = [0.0; 4];
        Self {
            kind,
            value,
            bytes,
            written,
            element,
            launched: 1.0,
            looped: 1.0,
            expression,
            users: Users::default(),
            is_fused: false,
            is_gone: false,
            is_last_step: false,
            product: None,
            launch: (0.0, 0.0),
            seconds,
        }
    }
    /// The size of the result.
    pub fn size(&self) -> Size {
        Size { bytes: self.bytes, element: self.element }
    }
    /// Adds a user, if the node can be fused.
    pub fn add_user(&mut self, user: u32) {
        if matches!(self.kind, Kind::Bitcast | Kind::Fusible) {
            self.users.insert(user);
        }
    }
}
