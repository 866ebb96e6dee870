//! All-to-alls between several pairs of dims.

use super::super::Lowering;
use crate::axis::AxisRef;
use crate::index::ValueId;
use crate::spmd::convert_global_to_local::GlobalToLocalOptions;
use crate::spmd::lower::resharding::sdy_collectives::Site;

impl Lowering<'_, '_, '_> {
    /// Combines several all-to-alls into one along a new leading dim.
    pub(in crate::spmd::lower) fn exchange_all(
        &mut self,
        site: &Site,
        params: &[(Vec<AxisRef>, i64, i64)],
        options: GlobalToLocalOptions,
    ) -> ValueId {
        let mut params: Vec<&(Vec<AxisRef>, i64, i64)> = params.iter().collect();
        params.sort_by_key(|param| param.2);
        let axes: Vec<AxisRef> = params.iter().flat_map(|param| param.0.clone()).collect();
        let shape = self.emit.shape(site.held.value);
        let (mut split, mut order) = (Vec::new(), Vec::new());
        for (dim, &size) in shape.iter().enumerate() {
            match params.iter().find(|param| param.2 as usize == dim) {
                Some(param) => {
                    let count = Self::number_of_shards(site, &param.0);
                    order.push(split.len());
                    split.extend([count, size / count]);
                }
                None => split.push(size),
            }
        }
        let rest: Vec<usize> = (0..split.len()).filter(|dim| !order.contains(dim)).collect();
        order.extend(rest);
        let mut value = self.reshaped(site, site.held.value, &split);
        value = self.transposed(site, value, &order);
        let parts = self.emit.shape(value);
        let count = Self::number_of_shards(site, &axes);
        value = self.reshaped(site, value, &[&[count], &parts[params.len()..]].concat());
        let mut attrs = self.exchange_attrs(site, &axes, options);
        attrs.push(("split_dimension", "0 : i64".to_owned()));
        attrs.push(("concat_dimension", "0 : i64".to_owned()));
        attrs.push(("split_count", format!("{count} : i64")));
        let ty = self.emit.type_of(value);
        value = self.emit.op("stablehlo.all_to_all", &[value], ty, &attrs);
        value = self.reshaped(site, value, &parts);
        // Each part goes before the dim it comes from.
        let mut order = Vec::with_capacity(parts.len());
        for dim in 0..shape.len() {
            order.extend((0..params.len()).filter(|&at| params[at].1 as usize == dim));
            order.push(params.len() + dim);
        }
        value = self.transposed(site, value, &order);
        self.reshaped(site, value, &site.shape)
    }
}
