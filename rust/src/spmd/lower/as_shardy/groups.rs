//! Groups of devices in collectives.

use super::super::one_by_one::Site;
use super::super::Lowering;
use crate::attribute::{write_axis, write_mesh, write_string};
use crate::axis::AxisRef;
use crate::mesh::Mesh;
use crate::shardy::Change;
use crate::spmd::collectives::{matrix_text, CHANNEL};
use crate::spmd::devices::replica_groups;
use crate::spmd::digits::digits_of;
use crate::spmd::one_by_one::OneByOne;
use std::fmt::Write as _;

impl Lowering<'_, '_, '_> {
    /// The channel and the groups of devices along `axes`.
    pub(in crate::spmd::lower) fn group_attrs(
        &mut self,
        site: &Site,
        axes: &[AxisRef],
        options: OneByOne,
    ) -> Vec<(&'static str, String)> {
        let groups = if options.names_groups {
            self.named_groups(site, axes)
        } else {
            matrix_text(&replica_groups(&digits_of(axes, &site.mesh), &site.mesh))
        };
        vec![(CHANNEL, self.collectives.channel().to_owned()), ("replica_groups", groups)]
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
        for (index, &axis) in axes.iter().enumerate() {
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
