//! Runs that are made once more from other annotations.

use super::{annotate, annotation, Course, Preparation, Prepared, Target};
use crate::axis::AxisRef;
use crate::index::{AxisId, Id};
use crate::mlir::parse;
use crate::pipeline::Completion;
use crate::propagation::observe::Slot;
use crate::propagation::replay::{Replayed, Replayer};
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
    let made = with_context(|context| Prepared::prepare(program, Completion::default(), context));
    let made = made.unwrap();
    let Preparation::Ready(ready) = made else { panic!("replays cover the program") };
    *ready
}

type Edits = Vec<(Slot, Option<TensorSharding>)>;

/// What a replay that follows the run of `prepared` to its end leads to.
fn replayed(prepared: &Prepared, replayer: &mut Replayer, edits: Edits) -> Replayed {
    match prepared.replay(replayer, edits) {
        Some(Course::Followed(replayed, _)) => replayed,
        _ => panic!("the run is followed to its end"),
    }
}

/// The arguments and the results of the completed program that a replay of the run of `prepared` leads to, with a
/// recording of the run that it leads to.
fn ports_of_replay(
    prepared: &Prepared,
    replayer: &mut Replayer,
    edits: Edits,
) -> (Prepared, Vec<Option<TensorSharding>>) {
    let none = Replayed::default();
    match prepared.replay(replayer, edits) {
        Some(Course::Followed(replayed, path)) => {
            let made = prepared.replayed(replayer, &path).unwrap();
            assert_eq!(prepared.completed_ports(&replayed), made.completed_ports(&none));
            let ports = made.completed_ports(&none);
            (made, ports)
        }
        Some(Course::Anew(made)) => {
            let ports = made.completed_ports(&none);
            (*made, ports)
        }
        None => panic!("the run is replayed"),
    }
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
    let unchanged = replayed(&again, &mut replayer, Vec::new());
    assert_eq!(again.completed_port(&unchanged, slot), Some(other.clone()));
    // Without edits a run starts from those of the run before.
    let same = again.rerun(&mut replayer, []).unwrap();
    let unchanged = replayed(&same, &mut replayer, Vec::new());
    assert_eq!(same.completed_port(&unchanged, slot), Some(other));
}

/// Closed and open shardings of two dims over axes `x` and `y` of a mesh.
fn shardings(given: &TensorSharding) -> Vec<TensorSharding> {
    const DIMS: [[&str; 2]; 6] =
        [["", ""], ["x", ""], ["", "x"], ["x", "y"], ["y", "x"], ["x y", ""]];
    let mut found = Vec::new();
    for (dims, open) in DIMS.iter().flat_map(|dims| (0..4).map(move |open| (dims, open))) {
        let mut sharding = TensorSharding::fully_replicated(given.mesh, 2, true);
        for (at, (dim, names)) in sharding.dims.iter_mut().zip(dims).enumerate() {
            let axis = |name| AxisRef::full(AxisId::from_index(usize::from(name == "y")));
            dim.axes = names.split_whitespace().map(axis).collect();
            dim.is_closed = open & (1 << at) == 0;
        }
        found.push(sharding);
    }
    found
}

/// The arguments and the results of the completed program if the argument and the result of the function are annotated so.
fn ports_of_new_run(
    argument: &TensorSharding,
    result: &TensorSharding,
) -> Vec<Option<TensorSharding>> {
    let mut program = parse(TEXT.into()).unwrap();
    let main = program.entry_function().unwrap();
    let targets = [Target::Argument(main, 0), Target::Result(main, 0)];
    let ids = [argument, result].map(|sharding| program.intern_sharding(sharding.clone()));
    annotate(&mut program, &[(targets[0], ids[0]), (targets[1], ids[1])]).unwrap();
    let made = with_context(|context| Prepared::prepare(program, Completion::default(), context));
    let Preparation::Ready(ready) = made.unwrap() else { panic!("replays cover the program") };
    ready.0.completed_ports(&Replayed::default())
}

#[test]
fn runs_share_a_replayer_whose_tables_grow() {
    let (first, mut replayer) = prepared();
    let target = Target::Argument(first.main, 0);
    let given = first.imported().shardings()[annotation(first.imported(), target)].clone();
    let slots = [first.slot(target).unwrap(), Slot::FuncResult(first.main, 0)];
    let before = first.completed_ports(&Replayed::default());
    let all = shardings(&given);
    for (argument, result) in
        all.iter().flat_map(|argument| all.iter().map(move |it| (argument, it)))
    {
        let edits = || slots.into_iter().zip([Some(argument.clone()), Some(result.clone())]);
        let expected = ports_of_new_run(argument, result);
        let again = first.rerun(&mut replayer, edits()).unwrap();
        assert_eq!(again.completed_ports(&Replayed::default()), expected);
        // The first run still holds, and so do replays from it to shardings that it did not know.
        let unchanged = replayed(&first, &mut replayer, Vec::new());
        assert_eq!(first.completed_ports(&unchanged), before);
        let (there, led) = ports_of_replay(&first, &mut replayer, edits().collect());
        assert_eq!(led, expected);
        let back = vec![(slots[0], Some(given.clone())), (slots[1], None)];
        for run in [&there, &again] {
            assert_eq!(ports_of_replay(run, &mut replayer, back.clone()).1, before);
        }
    }
}
