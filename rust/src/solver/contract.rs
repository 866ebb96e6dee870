//! Makes the problem smaller without losing its best choice.
//!
//! Nodes are merged to *variables*: a node whose strategy is a function of another node's strategy
//! joins the variable of that node. Strategies that no choice of finite cost contains are removed,
//! and nodes with one strategy are folded into the costs of their neighbours.

use super::problem::Problem;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The strategy of a node as a function of the value of its variable.
pub(super) type Map = Arc<[u16]>;

/// A set of nodes whose strategies are functions of one value.
#[derive(Default)]
pub(super) struct Variable {
    /// The cost of each value. Empty after the variable was merged or fixed.
    pub costs: Vec<f64>,
    pub members: Vec<(u32, Map)>,
    /// The tables shared with other variables, by variable.
    pub edges: BTreeMap<u32, u32>,
}

/// Costs of the pairs of values of two variables; row-major, with rows for the variable with the
/// lower number.
pub(super) struct Table {
    pub variables: [u32; 2],
    pub costs: Arc<[f64]>,
}

/// The problem during contraction.
pub(super) struct Contracted {
    pub variables: Vec<Variable>,
    pub tables: Vec<Table>,
    /// A constant part of the cost of every choice.
    pub constant: f64,
    /// The nodes with only one strategy left, and that strategy.
    pub fixed: Vec<(u32, u16)>,
}

impl Contracted {
    /// The contracted form of `problem`; `None` if every choice has a forbidden cost.
    pub fn new(problem: &Problem) -> Option<Self> {
        let mut this = Self::of(problem);
        loop {
            this.prune()?;
            if !this.contract() {
                return Some(this);
            }
        }
    }

    /// The initial form: a variable for each node, a table for each pair of nodes with edges.
    fn of(problem: &Problem) -> Self {
        let identity: Map = (0..=u16::MAX).collect();
        let mut variables: Vec<Variable> = Vec::with_capacity(problem.nodes().len());
        for (index, node) in problem.nodes().iter().enumerate() {
            let map = identity[..node.costs.len()].into();
            let members = vec![(index as u32, map)];
            variables.push(Variable { costs: node.costs.to_vec(), members, ..Variable::default() });
        }
        let mut this = Self { variables, tables: Vec::new(), constant: 0.0, fixed: Vec::new() };
        for edge in problem.edges() {
            let [a, b] = edge.nodes;
            this.add(a, b, edge.costs.clone());
        }
        this
    }

    pub fn size(&self, variable: u32) -> usize {
        self.variables[variable as usize].costs.len()
    }

    /// Adds costs for pairs of values of `a`, the rows, and `b`.
    fn add(&mut self, a: u32, b: u32, costs: Arc<[f64]>) {
        let columns = self.size(b);
        if a == b {
            let own = &mut self.variables[a as usize].costs;
            own.iter_mut().zip(costs.iter().step_by(columns + 1)).for_each(|(x, y)| *x += y);
            return;
        }
        let costs = if a < b { costs } else { transposed(&costs, columns) };
        let variables = [a.min(b), a.max(b)];
        if let Some(&table) = self.variables[a as usize].edges.get(&b) {
            let table = &mut self.tables[table as usize];
            table.costs = table.costs.iter().zip(costs.iter()).map(|(x, y)| x + y).collect();
            return;
        }
        let table = self.tables.len() as u32;
        self.variables[a as usize].edges.insert(b, table);
        self.variables[b as usize].edges.insert(a, table);
        self.tables.push(Table { variables, costs });
    }

    /// Removes values without a finite partner in some table, and folds variables with one value.
    fn prune(&mut self) -> Option<()> {
        let mut queue: Vec<u32> = (0..self.variables.len() as u32).rev().collect();
        let mut waits = vec![true; queue.len()];
        while let Some(variable) = queue.pop() {
            waits[variable as usize] = false;
            let edges = std::mem::take(&mut self.variables[variable as usize].edges);
            for (&other, &table) in &edges {
                if self.forbid_without_partner(variable, other, table) && !waits[other as usize] {
                    waits[other as usize] = true;
                    queue.push(other);
                }
            }
            self.variables[variable as usize].edges = edges;
        }
        self.compact()?;
        self.fold();
        Some(())
    }

    /// Forbids the values of `other` that have no finite partner among those of `variable`; returns
    /// whether there were any.
    fn forbid_without_partner(&mut self, variable: u32, other: u32, table: u32) -> bool {
        let Table { variables: [first, _], costs } = &self.tables[table as usize];
        let from = &self.variables[variable as usize].costs;
        let (rows, columns) = (from.len(), self.size(other));
        let strides = if *first == variable { [columns, 1] } else { [1, rows] };
        let mut gone = Vec::new();
        for (value, cost) in self.variables[other as usize].costs.iter().enumerate() {
            let at = |partner: usize| costs[partner * strides[0] + value * strides[1]];
            if cost.is_finite() && !(0..rows).any(|i| from[i].is_finite() && at(i).is_finite()) {
                gone.push(value);
            }
        }
        for &value in &gone {
            self.variables[other as usize].costs[value] = f64::INFINITY;
        }
        !gone.is_empty()
    }

    /// Removes the forbidden values from all tables; `None` if a variable has no other value.
    fn compact(&mut self) -> Option<()> {
        let mut kept: Vec<Vec<usize>> = Vec::with_capacity(self.variables.len());
        for variable in &self.variables {
            let costs = &variable.costs;
            let left: Vec<usize> = (0..costs.len()).filter(|&i| costs[i].is_finite()).collect();
            if left.is_empty() && !variable.members.is_empty() {
                return None;
            }
            kept.push(left);
        }
        for table in &mut self.tables {
            let [rows, columns] = table.variables.map(|variable| &kept[variable as usize]);
            let [all_rows, all_columns] =
                table.variables.map(|variable| self.variables[variable as usize].costs.len());
            if rows.len() < all_rows || columns.len() < all_columns {
                let row = |&row: &usize| columns.iter().map(move |&column| (row, column));
                let at = |(row, column)| table.costs[row * all_columns + column];
                table.costs = rows.iter().flat_map(row).map(at).collect();
            }
        }
        for (variable, left) in self.variables.iter_mut().zip(&kept) {
            if left.len() < variable.costs.len() {
                variable.costs = left.iter().map(|&i| variable.costs[i]).collect();
                for (_, map) in &mut variable.members {
                    *map = left.iter().map(|&i| map[i]).collect();
                }
            }
        }
        Some(())
    }

    /// Folds variables with one value: adds their table rows to the costs of their neighbours.
    fn fold(&mut self) {
        for index in 0..self.variables.len() as u32 {
            if self.size(index) != 1 {
                continue;
            }
            let Variable { costs, members, edges } =
                std::mem::take(&mut self.variables[index as usize]);
            self.constant += costs[0];
            self.fixed.extend(members.iter().map(|(node, map)| (*node, map[0])));
            for (other, table) in edges {
                let row = std::mem::take(&mut self.tables[table as usize].costs);
                let other = &mut self.variables[other as usize];
                other.edges.remove(&index);
                other.costs.iter_mut().zip(row.iter()).for_each(|(x, y)| *x += y);
            }
        }
    }

    /// Merges variables whose value is a function of another one's. Returns whether there were any.
    fn contract(&mut self) -> bool {
        let mut found = false;
        let mut next = 0;
        // Contraction appends tables, which are visited too.
        while next < self.tables.len() {
            let Table { variables: [a, b], costs } = &self.tables[next];
            let (a, b, costs) = (*a, *b, costs.clone());
            next += 1;
            if costs.is_empty() {
                continue;
            }
            let (rows, columns) = (self.size(a), self.size(b));
            let smaller_first =
                self.variables[b as usize].edges.len() <= self.variables[a as usize].edges.len();
            let ways = [(b, a), (a, b)];
            for (leaf, root) in if smaller_first { ways } else { [ways[1], ways[0]] } {
                let strides = if root == a { [columns, 1] } else { [1, columns] };
                let sizes = if root == a { [rows, columns] } else { [columns, rows] };
                if let Some(map) = function(&costs, sizes, strides) {
                    self.merge(leaf, root, &map, next as u32 - 1, sizes, strides);
                    found = true;
                    break;
                }
            }
        }
        found
    }

    /// Merges `leaf` into `root`; `map` is its value as a function of the value of `root`,
    /// according to `table`.
    fn merge(
        &mut self,
        leaf: u32,
        root: u32,
        map: &[u16],
        table: u32,
        [roots, leaves]: [usize; 2],
        strides: [usize; 2],
    ) {
        let Variable { costs, members, edges } = std::mem::take(&mut self.variables[leaf as usize]);
        let said = std::mem::take(&mut self.tables[table as usize].costs);
        let at_root = &mut self.variables[root as usize];
        for (value, &image) in map.iter().enumerate() {
            at_root.costs[value] +=
                costs[image as usize] + said[value * strides[0] + image as usize * strides[1]];
        }
        let mapped = members.into_iter().map(|(node, own)| {
            (node, map.iter().map(|&image| own[image as usize]).collect::<Map>())
        });
        at_root.members.extend(mapped);
        at_root.edges.remove(&leaf);
        for (other, table) in edges {
            if other == root {
                continue;
            }
            self.variables[other as usize].edges.remove(&leaf);
            let Table { variables: [first, _], costs } = &mut self.tables[table as usize];
            let is_row = *first == leaf;
            let costs = std::mem::take(costs);
            let others = costs.len() / leaves;
            let mut moved = Vec::with_capacity(roots * others);
            for &image in map {
                let image = image as usize;
                if is_row {
                    moved.extend_from_slice(&costs[image * others..(image + 1) * others]);
                } else {
                    moved.extend(costs.iter().skip(image).step_by(leaves));
                }
            }
            self.add(root, other, moved.into());
        }
    }
}

/// The only finite column of each row, if each row has exactly one.
fn function(costs: &[f64], [rows, columns]: [usize; 2], strides: [usize; 2]) -> Option<Vec<u16>> {
    let mut map = Vec::with_capacity(rows);
    for row in 0..rows {
        let at = |column: usize| costs[row * strides[0] + column * strides[1]];
        let mut finite = (0..columns).filter(|&column| at(column).is_finite());
        map.push(finite.next()? as u16);
        if finite.next().is_some() {
            return None;
        }
    }
    Some(map)
}

fn transposed(costs: &[f64], rows: usize) -> Arc<[f64]> {
    let columns = costs.len() / rows.max(1);
    (0..rows)
        .flat_map(|row| (0..columns).map(move |column| column * rows + row))
        .map(|at| costs[at])
        .collect()
}
