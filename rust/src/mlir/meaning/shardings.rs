//! Parses shardings and assigns them to their values.

use super::resolver::Resolver;
use super::target::{misfit, Target};
use crate::attribute::{self, ReadSharding};
use crate::error::{Code, Diagnostic, Span};
use crate::index::ShardingId;
use crate::ir::{OpKind, Program};
use crate::mesh::Mesh;
use std::rc::Rc;

/// Whether the shardings of `target` are in the header of a fragment.
fn is_in_header(program: &Program, target: Target) -> bool {
    matches!(target, Target::Results(_) | Target::RegionArgs(_))
        && program.kind(target.owner(program)) == OpKind::Fragment
}

impl Resolver<'_, '_> {
    /// Parses the sharding or shardings at `span` and assigns them to `target`.
    pub(super) fn read_shardings(&mut self, target: Target, span: Span) {
        let is_list =
            matches!(target, Target::Results(_) | Target::Unread(_) | Target::RegionArgs(_));
        let key = (is_list, self.notes.text_at(span));
        if let Some(shardings) = self.known.get(&key) {
            let shardings = shardings.clone();
            if target.fit(self.program, &shardings) {
                return target.place(self.program, &shardings);
            }
        }
        let owner = target.owner(self.program);
        let (text, base) = self.attribute_text(span);
        if let Some(problem) = target.is_other_kind(self.program, text) {
            return self.wrong(owner, "", [problem.at(span)]);
        }
        let read = if is_list {
            attribute::read_sharding_per_value(text, base, self.program)
        } else {
            attribute::read_lone_sharding(text, base, self.program).map(|read| vec![read])
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                let is_own = self.program.kind(owner).has_own_sharding();
                return self.unreadable(owner, is_own, error);
            }
        };
        if is_in_header(self.program, target) {
            return self.read_of_fragment(target, span, read);
        }
        let before = self.findings.problems.len();
        self.check_shardings(target, span, &read);
        let sharding = |read: ReadSharding| self.program.intern_sharding(read.sharding);
        let shardings: Rc<[ShardingId]> = read.into_iter().map(sharding).collect();
        if self.findings.problems.len() == before {
            self.known.insert(key, shardings.clone());
        }
        // Invalid shardings are assigned too if possible, since others are checked against them.
        if target.fit(self.program, &shardings) {
            target.place(self.program, &shardings);
        }
    }

    /// Assigns `read`, the shardings at `span` in the header of a fragment. The reference does not
    /// verify them: shardings that do not fit stay in the header.
    fn read_of_fragment(&mut self, target: Target, span: Span, read: Vec<ReadSharding>) {
        let are_sound = read.iter().all(|one| one.problems.is_empty());
        let is_empty = read.is_empty();
        let sharding = |read: ReadSharding| self.program.intern_sharding(read.sharding);
        let shardings: Vec<ShardingId> = read.into_iter().map(sharding).collect();
        if are_sound && target.fit(self.program, &shardings) {
            return target.place(self.program, &shardings);
        }
        let text = self.attribute_text(span).0;
        let list = text.find('[').map_or(text, |start| &text[start..]);
        let list = list.rfind(']').map_or(list, |end| &list[..=end]).to_owned();
        let is_of_inputs = matches!(target, Target::RegionArgs(_));
        self.program.keep_in_header(target.owner(self.program), is_of_inputs, &list, !is_empty);
    }
    /// Adds all errors of `read`, the shardings at `span`.
    fn check_shardings(&mut self, target: Target, span: Span, read: &[ReadSharding]) {
        let (owner, types) = (target.owner(self.program), target.types(self.program));
        let is_free = types.is_empty() && self.may_have_no_value(read);
        if read.len() != types.len() && !is_free {
            let side = self.program.sharding_side(owner, matches!(target, Target::RegionArgs(_)));
            let message = format!(
                "'{}' op {side} shardings don't match number of values: {} shardings vs {} values",
                self.program.op_name(owner),
                read.len(),
                types.len()
            );
            let problem = Diagnostic::new(Code::InvalidSharding, message).at(span);
            self.wrong(owner, "", [problem]);
        }
        for (index, one) in read.iter().enumerate() {
            let subject = target.subject(self.program, index, types.len());
            let ty = types.get(index).copied();
            let misfit = misfit(self.program, &one.sharding, ty).map(|problem| problem.at(span));
            let problems = one.problems.iter().cloned().chain(misfit);
            self.wrong(owner, &subject, problems);
        }
    }
    /// Whether an op without results may have the shardings `read`.
    fn may_have_no_value(&self, read: &[ReadSharding]) -> bool {
        let [ReadSharding { sharding, .. }] = read else { return read.is_empty() };
        let mesh = sharding.mesh.get().map(|mesh| self.program.mesh(mesh));
        mesh.is_some_and(Mesh::is_maximal) || sharding.is_fully_replicated()
    }
}
