//! Recognizes lines in installed packages and in Python's own library, which are not the user's
//! program.

/// Whether `place`, the path of a file with or without a line, is in an installed package, in
/// Python's library, or in a frozen module of Python.
pub fn is_installed(place: &str) -> bool {
    if place.starts_with("<frozen ") {
        return true;
    }
    let mut folders = place.split(['/', '\\']).peekable();
    while let Some(folder) = folders.next() {
        // The last component is the file.
        let Some(next) = folders.peek() else { break };
        if matches!(folder, "site-packages" | "dist-packages") {
            return true;
        }
        if matches!(folder, "lib" | "lib64") && is_python(next) {
            return true;
        }
    }
    false
}

/// Whether `folder` is the folder of Python's library, such as `python3.11`.
fn is_python(folder: &str) -> bool {
    let version = folder.strip_prefix("python").unwrap_or_default();
    version.starts_with(|first: char| first.is_ascii_digit())
        && version.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b't'))
}
