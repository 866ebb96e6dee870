//! The graph that is scheduled: kernels, the ends of collectives, and names: arguments, results of kernels that have several, and
//! results that a product reads in other dims (bitcasts).
//!
//! Source: XLA's `HloScheduleGraph`.

use super::estimates::Estimated;
use super::memory_pressure::Part;
use crate::compilers::xla_cpu::kernels::graph::{Graph, NONE};
use crate::compilers::xla_cpu::ragged_rows::Rows;
use rustc_hash::FxHashMap;

/// What a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A kernel, or the start of a collective.
    #[default]
    Kernel,
    /// What awaits the collective that this kernel starts.
    End(u32),
    /// A kernel that gives its operand another name.
    Renaming,
    /// A kernel that names all results of combined collectives, each of which has a name besides.
    Results,
    /// Another name of an argument or a result.
    Name,
}

/// A kernel, the end of a collective, or a name.
#[derive(Default)]
pub struct Node {
    /// Its own index.
    pub itself: u32,
    /// What it is.
    pub kind: Kind,
    /// How long it takes.
    pub what: Estimated,
    /// Whether it reads the result of a collective.
    pub reads_collective: bool,
    /// Microseconds of collectives on the longest path to it.
    pub depth: f64,
    /// Its place in the given order.
    pub place: u32,
    /// The number of its users that have not been placed.
    pub waits: u32,
    /// From when on it may run, and once it is placed, when it runs; in microseconds before the end.
    pub ready: f64,
}

impl Node {
    /// What it does for memory; `None` for what only gives something another name.
    pub const fn part(&self) -> Option<Part> {
        match self.kind {
            Kind::End(start) => Some(Part::End(start)),
            Kind::Name => None,
            Kind::Kernel | Kind::Renaming | Kind::Results => Some(Part::Kernel(self.itself)),
        }
    }
    /// Whether it starts a collective.
    pub fn starts(&self) -> bool {
        self.what.latency > 0.0
    }
    /// Whether it awaits a collective.
    pub const fn ends(&self) -> bool {
        matches!(self.kind, Kind::End(_))
    }
    /// Whether it runs nothing.
    pub const fn is_name(&self) -> bool {
        matches!(self.kind, Kind::Renaming | Kind::Results | Kind::Name)
    }
}

/// Nodes, and pairs of a node and one that it needs.
pub type Nodes = (Vec<Node>, Vec<(u32, u32)>);

/// The nodes of `graph`, kernels first, and pairs of a node and one that it needs; `None` if no kernel is a collective. `before`: for
/// each kernel others that must come earlier, besides those that it needs.
pub fn schedule_graph(
    graph: &Graph,
    before: &Rows<u32>,
    mut estimated: impl FnMut(u32) -> Estimated,
) -> Option<Nodes> {
    let count = graph.kernels.len() as u32;
    let node = |at: u32| {
        if graph.makes_names(at) {
            let kind = if graph.makes(at).len() > 1 { Kind::Results } else { Kind::Renaming };
            return Node { itself: at, kind, ..Node::default() };
        }
        Node { itself: at, what: estimated(at), ..Node::default() }
    };
    let mut nodes: Vec<Node> = (0..count).map(node).collect();
    let mut end_of: Vec<u32> = (0..count).collect();
    for start in 0..count {
        if nodes[start as usize].starts() {
            let itself = nodes.len() as u32;
            end_of[start as usize] = itself;
            let what = Estimated { latency: 0.0, ..nodes[start as usize].what };
            nodes.push(Node { itself, kind: Kind::End(start), what, ..Node::default() });
        }
    }
    if nodes.len() == graph.kernels.len() {
        return None;
    }
    let mut needs = Vec::with_capacity(graph.num_reads());
    needs.extend(
        (0..count).filter_map(|at| Some((end_of[at as usize], at)).filter(|it| it.0 != at)),
    );
    let mut names = Names { nodes, needs, known: FxHashMap::default() };
    let mut seen_by = FxHashMap::default();
    for at in 0..count {
        for read in graph.reads(at) {
            let by = graph.items[read.item as usize].made_by;
            let mut need = end_of.get(by as usize).copied();
            let is_of_set = names.nodes[at as usize].kind == Kind::Results;
            if need.is_none() || graph.makes(by).len() > 1 && !is_of_set {
                need = Some(names.name((read.item, 0), need));
            }
            if read.view > 0 {
                need = Some(names.name((read.item, read.view), need));
            }
            let Some(need) = need.filter(|_| by != at) else { continue };
            if seen_by.insert(need, at) != Some(at) {
                names.needs.push((at, need));
            }
        }
        for &by in before.row(at) {
            let need = end_of[by as usize];
            if by != at && seen_by.insert(need, at) != Some(at) {
                names.needs.push((at, need));
            }
        }
    }
    for &item in graph.returned.iter().filter(|&&item| item != NONE) {
        let by = graph.items[item as usize].made_by;
        if let Some(&need) = end_of.get(by as usize).filter(|_| graph.makes(by).len() > 1) {
            names.name((item, 0), Some(need));
        }
    }
    Some((names.nodes, names.needs))
}

/// Nodes, and names among them.
struct Names {
    nodes: Vec<Node>,
    needs: Vec<(u32, u32)>,
    /// The names of items, by what they are read as.
    known: FxHashMap<(u32, u16), u32>,
}

impl Names {
    /// The node that names an item, which `need` makes.
    fn name(&mut self, item: (u32, u16), need: Option<u32>) -> u32 {
        let at = self.nodes.len() as u32;
        let known = *self.known.entry(item).or_insert(at);
        if known == at {
            self.nodes.push(Node { itself: at, kind: Kind::Name, ..Node::default() });
            self.needs.extend(need.map(|need| (at, need)));
        }
        known
    }
}
