//! The form in which XLA propagates a program.

use super::rules::registry;
use crate::context::RuleSource;
use crate::cost::inline::{Inlined, Originals};
use crate::import::hlo_loops::Loops;
use crate::import::{hlo_captures, hlo_form, hlo_order, hlo_simplified};
use crate::ir::Program;

/// `original` in the form and the order in which XLA propagates, and the originals of what is inlined.
pub(super) fn as_in_xla(original: &Program) -> (Program, Originals) {
    let (mut program, mut originals) = Inlined::new(original).into_parts();
    Loops::of(original).run(&mut program, &mut originals);
    hlo_simplified::run(&mut program, &mut originals);
    hlo_form::run(&mut program, &mut originals);
    hlo_order::run(&mut program);
    hlo_captures::capture(&mut program, &mut originals);
    registry().legalizing_chlo().sign(&mut program);
    (program, originals)
}
