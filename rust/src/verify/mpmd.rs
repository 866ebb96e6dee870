//! Checks ops of `mpmd`, Shardy's dialect for pipelines: their operands, results, attributes and
//! regions.
//!
//! `pipelines` has checks that are specific to one op. As in MLIR, only the first error of an op is
//! reported.
//!
//! Source: the definitions of the dialect's ops.

use super::fragments::LACKS_MESH;
use super::Verifier;
use crate::index::{OpId, TypeId, ValueId};
use crate::ir::{OpKind, Program, Type};
use crate::mlir::{text_is_of, AttrValue};
use crate::stablehlo::{Attribute, Attributes, Element};

/// The types that operands or results may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Takes {
    Any,
    Tensor,
    MeshTensor,
    TensorOrMeshTensor,
    MeshTensorOrToken,
    /// The types of the operands of most ops of `StableHLO`, and tokens.
    PlainTensorOrToken,
}
use Takes::{Any, MeshTensor, MeshTensorOrToken, PlainTensorOrToken, Tensor, TensorOrMeshTensor};

impl Takes {
    const fn name(self) -> &'static str {
        match self {
            Any => "any type",
            Tensor => "tensor of any non-token type values",
            MeshTensor => "mesh tensor type",
            TensorOrMeshTensor => "tensor of any non-token type values or mesh tensor type",
            MeshTensorOrToken => "mesh tensor type or token",
            PlainTensorOrToken => {
                "ranked tensor of 4/6/8/16/32/64-bit float or bool or 2/4/8/16/32/64-bit integer or complex type \
                 with 32/64-bit float elements or per-tensor integer quantized values or token"
            }
        }
    }
    fn admits(self, program: &Program, ty: TypeId) -> bool {
        let is_token = || program.type_text(ty).trim().starts_with("!stablehlo.token");
        match &program.types()[ty] {
            _ if self == Any => true,
            Type::RankedTensor { .. } => {
                matches!(self, Tensor | TensorOrMeshTensor | PlainTensorOrToken)
            }
            Type::UnrankedTensor(_) => matches!(self, Tensor | TensorOrMeshTensor),
            Type::MeshTensor { .. } => {
                matches!(self, MeshTensor | MeshTensorOrToken | TensorOrMeshTensor)
            }
            _ => matches!(self, MeshTensorOrToken | PlainTensorOrToken) && is_token(),
        }
    }
}

/// A kind of attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Str,
    Origin,
    Origins,
    Reduction,
    Symbol,
    I64,
    Ui32,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Str => "string attribute",
            Self::Origin => "Origin of user-specified computation.",
            Self::Origins => "array of origin infos",
            Self::Reduction => "Denotes a reduction.",
            Self::Symbol => "flat symbol reference attribute",
            Self::I64 => "64-bit signless integer attribute",
            Self::Ui32 => "32-bit unsigned integer attribute",
        }
    }
    /// Whether the reference stores `attribute` in a property of this kind, even if it is not a
    /// valid value.
    fn stores(self, program: &Program, attribute: &Attribute<'_>) -> bool {
        match self {
            Self::Origins => matches!(attribute.value, AttrValue::Array(_)),
            Self::Symbol => matches!(attribute.value, AttrValue::Symbol(_)),
            Self::I64 | Self::Ui32 => {
                matches!(attribute.value, AttrValue::Int(_) | AttrValue::Bool(_))
            }
            _ => self.admits(program, attribute),
        }
    }
    fn admits(self, program: &Program, attribute: &Attribute<'_>) -> bool {
        let text = attribute.text.unwrap_or_default().trim();
        let is_origin =
            |text: &str| text_is_of(program.resolved_alias(text), "mpmd", "user_origin");
        match self {
            Self::Str => matches!(attribute.value, AttrValue::Str(_)),
            Self::Origin => is_origin(text),
            Self::Origins => {
                let items = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
                let parts = items.map(|items| items.split('#').map(str::trim));
                let mut parts = parts.into_iter().flatten();
                items.is_some()
                    && parts.next() == Some("")
                    && parts.all(|part| is_origin(&format!("#{}", part.trim_end_matches(','))))
            }
            Self::Reduction => text_is_of(text, "mpmd", "reduction"),
            Self::Symbol => {
                matches!(&attribute.value, AttrValue::Symbol(name) if !name.contains("::"))
            }
            Self::I64 => attribute.number_type() == Some(Element::I64),
            Self::Ui32 => attribute.number_type() == Some(Element::parse("ui32")),
        }
    }
}

/// An attribute: its name, its kind, whether it is required, and whether the custom syntax has it
/// outside of the dictionary.
type Attr = (&'static str, Kind, bool, bool);

/// The definition of an op.
struct Definition {
    /// The types of operands, and whether there may be any number of them or only one.
    operands: (Takes, bool),
    results: (Takes, bool),
    attributes: &'static [Attr],
    has_region: bool,
    /// Whether all operands and results have the same type.
    is_of_one_type: bool,
    /// The ops whose region it may be directly in; any if empty.
    parents: &'static [OpKind],
}

const ORIGIN: Attr = ("origin", Kind::Str, false, false);
const ORIGINS: Attr = ("origin", Kind::Origins, true, true);
const MESH: Attr = ("mesh_name", Kind::Str, true, true);
const CALLEE: Attr = ("callee", Kind::Symbol, true, true);

const OF_ONE: Definition = Definition {
    operands: (Tensor, false),
    results: (Tensor, false),
    attributes: &[],
    has_region: false,
    is_of_one_type: false,
    parents: &[],
};
const OF_MANY: Definition = Definition { operands: (Any, true), results: (Any, true), ..OF_ONE };
const IN_FUNCTION: &[OpKind] = &[OpKind::Func];
const IN_FUNCTION_OR_LOOP: &[OpKind] = &[OpKind::Func, OpKind::MpmdFor];

/// The definitions, by name.
static DEFINITIONS: [(&str, Definition); 12] = [
    (
        "mpmd.transfer",
        Definition {
            operands: (MeshTensor, false),
            results: (MeshTensor, false),
            parents: IN_FUNCTION,
            ..OF_ONE
        },
    ),
    (
        "mpmd.assign",
        Definition {
            results: (MeshTensor, false),
            attributes: &[ORIGIN],
            parents: IN_FUNCTION_OR_LOOP,
            ..OF_ONE
        },
    ),
    (
        "mpmd.unassign",
        Definition {
            operands: (MeshTensor, false),
            attributes: &[ORIGIN],
            parents: IN_FUNCTION_OR_LOOP,
            ..OF_ONE
        },
    ),
    ("mpmd.broadcast", Definition { is_of_one_type: true, ..OF_ONE }),
    (
        "mpmd.named_tensor",
        Definition {
            attributes: &[("name", Kind::Str, true, true)],
            is_of_one_type: true,
            ..OF_ONE
        },
    ),
    (
        "mpmd.reduce",
        Definition {
            operands: (Tensor, true),
            attributes: &[("reduction", Kind::Reduction, false, true)],
            is_of_one_type: true,
            ..OF_ONE
        },
    ),
    (
        "mpmd.call",
        Definition {
            operands: (TensorOrMeshTensor, true),
            results: (TensorOrMeshTensor, true),
            attributes: &[CALLEE],
            ..OF_MANY
        },
    ),
    (
        "mpmd.fragment_call",
        Definition {
            operands: (MeshTensor, true),
            results: (MeshTensor, true),
            attributes: &[CALLEE, MESH, ORIGINS],
            parents: IN_FUNCTION,
            ..OF_MANY
        },
    ),
    (
        "mpmd.fragment",
        Definition {
            operands: (MeshTensorOrToken, true),
            results: (MeshTensorOrToken, true),
            attributes: &[MESH, ORIGINS, ("stage_id", Kind::I64, false, true)],
            has_region: true,
            parents: IN_FUNCTION_OR_LOOP,
            ..OF_MANY
        },
    ),
    (
        "mpmd.named_computation",
        Definition {
            operands: (PlainTensorOrToken, true),
            results: (PlainTensorOrToken, true),
            attributes: &[("origin", Kind::Origin, true, true)],
            has_region: true,
            ..OF_MANY
        },
    ),
    (
        "mpmd.for",
        Definition {
            attributes: &[
                ("iterations", Kind::Ui32, true, false),
                ("unroll_factor", Kind::Ui32, false, false),
            ],
            has_region: true,
            ..OF_MANY
        },
    ),
    ("mpmd.return", OF_MANY),
];

/// Whether ops called `name` are checked here.
pub(super) fn is_defined(name: &str) -> bool {
    DEFINITIONS.iter().any(|(known, _)| *known == name)
}

impl Verifier<'_> {
    /// Checks `op`, one of the dialect.
    pub(super) fn mpmd(&mut self, op: OpId) {
        let name = self.program.op_name(op);
        let Some((_, definition)) = DEFINITIONS.iter().find(|(known, _)| *known == name) else {
            return;
        };
        let found = match self.stored(op, definition) {
            Ok(()) => self.follows(op, definition),
            Err(message) => return self.bare(op, message),
        };
        let found = found.map_err(|message| {
            let is_parsed = message.starts_with("attribute 'origin'") && !self.is_quoted(op);
            let parsed = if is_parsed { format!("custom op '{name}' ") } else { String::new() };
            format!("{parsed}'{name}' op {message}")
        });
        if let Err(message) = found.and_then(|()| self.pipeline(op)) {
            // The called function lacks its mesh.
            let place = self.function_to_blame(op).filter(|_| message.starts_with(LACKS_MESH));
            self.bare(place.unwrap_or(op), message);
        }
    }
    /// Checks that the properties of `op`, in generic form, have the types in which the reference
    /// stores them.
    fn stored(&self, op: OpId, definition: &Definition) -> Result<(), String> {
        let program = self.program;
        let attributes = Attributes::of(program, op);
        for (name, kind, ..) in definition.attributes {
            let given = attributes.get(name).filter(|attribute| attribute.is_property);
            if let Some(wrong) = given.filter(|attribute| !kind.stores(program, attribute)) {
                return Err(attributes.invalid(program.op_name(op), &wrong.not_stored()));
            }
        }
        Ok(())
    }
    /// Checks `op` against its definition; the message is without the op's name.
    fn follows(&self, op: OpId, definition: &Definition) -> Result<(), String> {
        let program = self.program;
        self.counts(op, definition)?;
        self.mpmd_attributes(op, definition)?;
        let operands: Vec<ValueId> = program.operands(op).collect();
        let results: Vec<ValueId> = program.op_results(op).collect();
        let sides =
            [("operand", definition.operands, &operands), ("result", definition.results, &results)];
        for (side, (takes, is_variadic), values) in sides {
            let wrong = values.iter().position(|&v| !takes.admits(program, program.type_of(v)));
            if let Some(at) = wrong {
                let (of, what) = (if is_variadic { "variadic of " } else { "" }, takes.name());
                let text = program.value_type_text(values[at]);
                return Err(format!("{side} #{at} must be {of}{what}, but got '{text}'"));
            }
        }
        if definition.has_region {
            self.one_block(op)?;
        }
        if definition.is_of_one_type {
            if operands.is_empty() {
                return Err("expected 1 or more operands, but found 0".to_owned());
            }
            let mut types = operands.iter().chain(&results).map(|&value| program.type_of(value));
            let first = types.next();
            if types.any(|ty| Some(ty) != first) {
                return Err("requires the same type for all operands and results".to_owned());
            }
        }
        self.stands_in(op, definition.parents)
    }
    fn counts(&self, op: OpId, definition: &Definition) -> Result<(), String> {
        let program = self.program;
        let has = [program.num_regions(op), program.num_results(op), program.num_operands(op)];
        let needs = [
            Some(usize::from(definition.has_region)),
            (!definition.results.1).then_some(1),
            (!definition.operands.1).then_some(1),
        ];
        let nouns = ["region", "result", "operand"];
        let mut wrong = nouns
            .into_iter()
            .zip(needs)
            .zip(has)
            .filter_map(|((noun, needs), has)| crate::mlir::wrong_count(noun, needs?, has));
        wrong.next().map_or(Ok(()), Err)
    }
    fn mpmd_attributes(&self, op: OpId, definition: &Definition) -> Result<(), String> {
        let program = self.program;
        let attributes = Attributes::of(program, op);
        let is_generic = self.is_quoted(op);
        let own = || definition.attributes.iter().filter(|attr| is_generic || !attr.3);
        if let Some((name, ..)) =
            own().find(|(name, _, is_required, _)| *is_required && attributes.get(name).is_none())
        {
            return Err(format!("requires attribute '{name}'"));
        }
        for (name, kind, ..) in own() {
            if attributes.get(name).is_some_and(|attr| !kind.admits(program, attr)) {
                let kind = kind.name();
                return Err(format!("attribute '{name}' failed to satisfy constraint: {kind}"));
            }
        }
        Ok(())
    }
    /// Whether `op` is written in generic form.
    fn is_quoted(&self, op: OpId) -> bool {
        let start = self.program.name_span(op).map_or(0, |name| name.start as usize);
        start > 0 && self.program.text().source().as_bytes()[start - 1] == b'"'
    }
    /// Checks that the region of `op` has one block that is not empty.
    fn one_block(&self, op: OpId) -> Result<(), String> {
        let program = self.program;
        let Some(region) = program.op_regions(op).next() else { return Ok(()) };
        let num_blocks = program.region_blocks(region).count();
        if num_blocks != 1 {
            let message = "region #0 ('region') failed to verify constraint: region with 1 blocks";
            return Err(message.to_owned());
        }
        let entry = program.region_entry(region);
        if program.first_op(entry).is_none() {
            return Err("expects a non-empty block".to_owned());
        }
        Ok(())
    }
    /// Checks that `op` is directly inside an op of one of `kinds`, or of any kind if that is
    /// empty.
    fn stands_in(&self, op: OpId, kinds: &[OpKind]) -> Result<(), String> {
        let program = self.program;
        let parent = program.parent_op(op).map(|parent| program.kind(parent));
        if kinds.is_empty() || parent.is_some_and(|parent| kinds.contains(&parent)) {
            return Ok(());
        }
        Err(match kinds {
            [OpKind::Func] => "expects parent op 'func.func'".to_owned(),
            _ => "expects parent op to be one of 'func.func, mpmd.for'".to_owned(),
        })
    }
}
