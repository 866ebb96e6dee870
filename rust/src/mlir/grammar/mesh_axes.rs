//! Replica groups given by mesh axes:
//! `#stablehlo.replica_group_mesh_axes<mesh = ..., axes = [...]>`.

/// The error message for `body`, the fields in angle brackets, if the mesh is written inline and
/// lacks some axis.
pub(super) fn problem(body: &str) -> Option<String> {
    let value = |name| field(body, name).map(|(start, end)| &body[start..end]);
    let (mesh, axes) = (value("mesh")?, value("axes")?);
    let (start, end) = field(mesh, "axes")?;
    let unknown = names(axes).find(|name| names(&mesh[start..end]).all(|own| own != *name))?;
    Some(format!("axis '{unknown}' not found in mesh definition"))
}

/// The axis names in a list of axes, which are its only quoted strings.
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split('"').skip(1).step_by(2)
}

/// The range of the value of field `name` in the structured attribute `text`.
pub fn field(text: &str, name: &str) -> Option<(usize, usize)> {
    let open = text.find('<')? + 1;
    let mut start = open;
    let mut depth = 0_usize;
    let mut is_quoted = false;
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b',' | b'>' if depth == 0 => {
                let setting = &text[start..at];
                let (key, value) = setting.split_once('=')?;
                if key.trim() == name {
                    let value_start = at - value.trim_start().len();
                    return Some((value_start, value_start + value.trim().len()));
                }
                start = at + 1;
            }
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn axes_are_those_of_the_mesh() {
        let mesh = r#"mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>]>"#;
        let body = |axis| format!(r#"<axes = [#stablehlo.axis_ref<name = "{axis}">], {mesh}>"#);
        assert_eq!(problem(&body("x")), None);
        assert_eq!(problem(&body("y")).unwrap(), "axis 'y' not found in mesh definition");
        assert_eq!(problem(r#"<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y">]>"#), None);
    }
}
