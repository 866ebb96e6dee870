//! Runs that are made once more from other annotations.

use super::{annotation, Preparation, Prepared, Target};
use crate::mlir::parse;
use crate::pipeline::Completion;
use crate::propagation::observe::Slot;
use crate::propagation::replay::Replayer;
use crate::propagation::tests::with_context;
use crate::sharding::TensorSharding;

const TEXT: &str = r#"
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<8x8xf32> {
  %0 = stablehlo.add %arg0, %arg0
    {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}>}
    : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"#;

fn prepared() -> (Prepared, Replayer) {
    let program = parse(TEXT.into()).unwrap();
    let made = with_context(|context| Prepared::prepare(&program, Completion::default(), context));
    let made = made.unwrap();
    let Preparation::Ready(ready) = made else { panic!("replays cover the program") };
    *ready
}

/// Whether the argument has to be annotated so that it gets `sharding`.
fn is_placed(prepared: &Prepared, slot: Slot, sharding: &TensorSharding) -> bool {
    let edits = prepared.placed(&[Some(sharding.clone()), Some(sharding.clone())]).unwrap();
    edits.contains(&(slot, Some(sharding.clone())))
}

#[test]
fn a_run_made_once_more_starts_from_its_own_annotations() {
    let (first, mut replayer) = prepared();
    let target = Target::Argument(first.main, 0);
    let slot = first.slot(target).unwrap();
    let imported = first.imported();
    let given = imported.shardings()[annotation(imported, target)].clone();
    let other = TensorSharding::fully_replicated(given.mesh, 2, true);
    assert!(!is_placed(&first, slot, &given) && is_placed(&first, slot, &other));
    let again = first.rerun(&mut replayer, [(slot, Some(other.clone()))]).unwrap();
    assert!(is_placed(&again, slot, &given) && !is_placed(&again, slot, &other));
    let unchanged = again.replay(&mut replayer, []).unwrap();
    assert_eq!(again.completed_ports(&unchanged), [Some(other), None]);
}
