//! Instantiates a rule in short notation for the shapes of an op.

use super::builder::{FactorKind, RuleBuilder};
use super::notation::{error, Dim, Notation, Parsed, FORMS};
use super::view::SignatureView;
use crate::error::Result;
use crate::index::{FactorId, Id};
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};

impl Notation {
    /// The rule for an op with these shapes.
    pub fn instantiate(&self, view: &SignatureView<'_>) -> Result<OpShardingRule> {
        self.try_instantiate(view)
            .map_err(|message| error(&self.text, message).with_hint(FORMS).into())
    }

    fn try_instantiate(&self, view: &SignatureView<'_>) -> Parsed<OpShardingRule> {
        let sides = [
            ("operand", &self.operands, view.num_operands()),
            ("result", &self.results, view.num_results()),
        ];
        let mut tensors = Vec::new();
        for (what, specs, count) in sides {
            if specs.len() != count {
                return Err(format!("it has {} {what}s, and the op has {count}", specs.len()));
            }
            for (index, dims) in specs.iter().enumerate() {
                let shape =
                    if what == "operand" { view.operand(index) } else { view.result(index) };
                let name = format!("{what} {index}");
                tensors.push(expand(&name, dims, shape.unwrap_or(&[]))?);
            }
        }
        let mut factors = self.factor_sizes(&tensors)?;
        drop_hidden(&mut factors, &tensors);
        self.build(view, &tensors, &factors)
    }

    /// Every factor with its size, in order of appearance.
    fn factor_sizes(&self, tensors: &[Tensor<'_>]) -> Parsed<Vec<(String, i64)>> {
        let mut order: Vec<String> = Vec::new();
        for name in tensors.iter().flat_map(|tensor| &tensor.dims).flatten() {
            if !order.contains(name) {
                order.push(name.clone());
            }
        }
        let mut sizes: Vec<Option<i64>> = order
            .iter()
            .map(|name| self.sizes.iter().find(|(other, _)| other == name).map(|(_, size)| *size))
            .collect();
        let place = |name: &String| order.iter().position(|other| other == name).unwrap_or(0);
        // Each iteration determines the size of another factor, or is the last.
        let mut has_learned = true;
        while std::mem::take(&mut has_learned) {
            for tensor in tensors {
                for (factors, &dim_size) in tensor.dims.iter().zip(tensor.shape) {
                    let unknown: Vec<usize> =
                        factors.iter().map(place).filter(|&at| sizes[at].is_none()).collect();
                    let known = factors.iter().filter_map(|name| sizes[place(name)]);
                    let known = known.fold(1_i64, i64::saturating_mul);
                    if let [at] = unknown[..] {
                        if known <= 0 || dim_size % known != 0 {
                            let list = factors.join(" ");
                            return Err(format!(
                                "({list}) cannot have size {dim_size} in {}",
                                tensor.name
                            ));
                        }
                        sizes[at] = Some(dim_size / known);
                        has_learned = true;
                    }
                }
            }
        }
        let known = order.into_iter().zip(sizes).map(|(name, size)| {
            let missing = || format!("the size of {name} is unknown; say it, {{{name}=8}}");
            let size = size.ok_or_else(missing)?;
            Ok((name, size))
        });
        known.collect()
    }

    fn build(
        &self,
        view: &SignatureView<'_>,
        tensors: &[Tensor<'_>],
        factors: &[(String, i64)],
    ) -> Parsed<OpShardingRule> {
        let mut operands: Vec<_> = tensors.iter().map(|tensor| tensor.mapping(factors)).collect();
        let results = operands.split_off(view.num_operands());
        let mut builder = RuleBuilder::with_mappings(operands, results);
        for (index, (name, size)) in factors.iter().enumerate() {
            let is_in_result = builder.is_in_result(FactorId::from_index(index));
            let listed = self.kinds.iter().find(|(other, _)| other == name).map(|(_, kind)| *kind);
            let kind = match listed {
                None if !is_in_result => FactorKind::Reduction,
                Some(FactorKind::Reduction) if is_in_result => {
                    return Err(format!("{name} is a reduction and is in a result"));
                }
                _ => listed.unwrap_or(FactorKind::PassThrough),
            };
            let is_blocked = self.blocked.contains(name);
            builder.reserve(*size, kind);
            builder.blocked_if(is_blocked);
            let may_differ =
                is_blocked || matches!(kind, FactorKind::NeedReplication | FactorKind::Permutation);
            if !may_differ {
                check_sizes(name, tensors, factors)?;
            }
        }
        builder.build().ok_or_else(|| "it does not fit the shapes".into())
    }
}

/// Drops factors of size 1 that are only in dims with other factors.
fn drop_hidden(factors: &mut Vec<(String, i64)>, tensors: &[Tensor<'_>]) {
    let all = factors.clone();
    let is_one = |name: &String| all.iter().any(|(other, size)| other == name && *size == 1);
    let has_dim = |name: &String| {
        let mut dims = tensors.iter().flat_map(|tensor| &tensor.dims);
        dims.any(|dim| dim.first() == Some(name) && dim.iter().all(is_one))
    };
    factors.retain(|(name, size)| *size != 1 || has_dim(name));
}

/// A tensor with `...` expanded.
struct Tensor<'a> {
    name: String,
    dims: Vec<Vec<String>>,
    shape: &'a [i64],
}

impl Tensor<'_> {
    /// For each dim the indices of its factors in `factors`; in a dim with several factors, those
    /// of size 1 are left out.
    fn mapping(&self, factors: &[(String, i64)]) -> TensorMapping {
        let place = |name: &String| factors.iter().position(|(other, _)| other == name);
        let dim = |names: &Vec<String>| {
            let places = names.iter().filter_map(place);
            let mut ids: Vec<usize> = places.collect();
            if ids.iter().any(|&id| factors[id].1 != 1) {
                ids.retain(|&id| factors[id].1 != 1);
            } else {
                ids.truncate(1);
            }
            ids.into_iter().map(FactorId::from_index).collect()
        };
        TensorMapping { dims: self.dims.iter().map(dim).collect() }
    }
}

/// Gives each dim that `...` stands for its own factor, counted from the minor end.
fn expand<'a>(name: &str, dims: &[Dim], shape: &'a [i64]) -> Parsed<Tensor<'a>> {
    let num_named = dims.iter().filter(|dim| **dim != Dim::Rest).count();
    let has_rest = num_named < dims.len();
    let rank = shape.len();
    if rank < num_named || (rank > num_named && !has_rest) {
        return Err(format!("{name} has {num_named} dims in it, and {rank} in the op"));
    }
    let mut expanded = Vec::with_capacity(rank);
    for dim in dims {
        match dim {
            Dim::Factors(factors) => expanded.push(factors.clone()),
            Dim::Rest => {
                expanded
                    .extend((0..rank - num_named).rev().map(|place| vec![format!("...{place}")]));
            }
        }
    }
    for (at, factor) in expanded.iter().flatten().enumerate() {
        if expanded.iter().flatten().skip(at + 1).any(|other| other == factor) {
            return Err(format!("{factor} is twice in {name}"));
        }
    }
    Ok(Tensor { name: name.to_owned(), dims: expanded, shape })
}

/// Checks that the sizes of the dims with `factor` are the products of their factors' sizes.
fn check_sizes(factor: &String, tensors: &[Tensor<'_>], factors: &[(String, i64)]) -> Parsed<()> {
    let size_of = |name: &String| {
        factors.iter().find(|(other, _)| other == name).map_or(1, |(_, size)| *size)
    };
    for tensor in tensors {
        for (dim, &size) in tensor.dims.iter().zip(tensor.shape) {
            let product = dim.iter().map(size_of).fold(1_i64, i64::saturating_mul);
            if dim.contains(factor) && product != size {
                let list = dim.join(" ");
                return Err(format!(
                    "{list} has size {size} in {} and {product} elsewhere",
                    tensor.name
                ));
            }
        }
    }
    Ok(())
}
