//! Groups of devices in collectives.

use super::super::Lowering;
use crate::attribute::{write_axis, write_mesh, write_string};
use crate::axis::{push_or_merge, AxisRef};
use crate::mesh::Mesh;
use crate::shardy::Change;
use crate::spmd::collectives::{matrix_text, CHANNEL};
use crate::spmd::convert_global_to_local::GlobalToLocalOptions;
use crate::spmd::devices::replica_groups;
use crate::spmd::digits::digits_of;
use crate::spmd::lower::resharding::sdy_collectives::Site;
use std::fmt::Write as _;

impl Lowering<'_, '_, '_> {
    /// The channel and the groups of devices along `axes`.
    pub(in crate::spmd::lower) fn group_attrs(
        &mut self,
        site: &Site,
        axes: &[AxisRef],
        options: GlobalToLocalOptions,
    ) -> Vec<(&'static str, String)> {
        let groups = self.groups(site, axes, options);
        vec![(CHANNEL, self.collectives.channel().to_owned()), ("replica_groups", groups)]
    }
    /// The attributes of an all-to-all along `axes`; between replicas it has no channel.
    pub(in crate::spmd::lower) fn exchange_attrs(
        &mut self,
        site: &Site,
        axes: &[AxisRef],
        options: GlobalToLocalOptions,
    ) -> Vec<(&'static str, String)> {
        if self.emit.devices.has_replicas() {
            return vec![("replica_groups", self.groups(site, axes, options))];
        }
        self.group_attrs(site, axes, options)
    }
    fn groups(&self, site: &Site, axes: &[AxisRef], options: GlobalToLocalOptions) -> String {
        if options.names_groups {
            self.named_groups(site, axes)
        } else {
            matrix_text(&replica_groups(&digits_of(axes, &site.mesh), &site.mesh))
        }
    }
    /// `#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>`
    fn named_groups(&self, site: &Site, axes: &[AxisRef]) -> String {
        let program = &*self.emit.program;
        let mut text = String::from("#stablehlo.replica_group_mesh_axes<mesh = ");
        if let Some(symbol) = program.meshes()[site.mesh_id].symbol {
            text.push('@');
            text.push_str(program.str(symbol));
        } else {
            text.push_str("#sdy.mesh");
            write_mesh(&mut text, &site.mesh);
        }
        text.push_str(", axes = [");
        let mut merged: Vec<AxisRef> = Vec::with_capacity(axes.len());
        for &axis in axes {
            if program.shardy().has(Change::StablehloAxisRefs) {
                push_or_merge(&mut merged, axis, &site.mesh);
            } else {
                merged.push(axis);
            }
        }
        for (index, &axis) in merged.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { ", " });
            if program.shardy().has(Change::StablehloAxisRefs) {
                write_stablehlo_axis(&mut text, axis, &site.mesh);
            } else {
                text.push_str("#sdy<axis_ref");
                write_axis(&mut text, axis, &site.mesh);
                text.push('>');
            }
        }
        text.push_str("]>");
        text
    }
}

/// Appends `#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>`.
fn write_stablehlo_axis(text: &mut String, axis: AxisRef, mesh: &Mesh) {
    text.push_str("#stablehlo.axis_ref<name = ");
    write_string(text, mesh.axis_name(axis.axis));
    if let Some(sub) = axis.sub {
        let _ = write!(text, ", sub_axis_info = ({}){}", sub.pre_size, sub.size);
    }
    text.push('>');
}
