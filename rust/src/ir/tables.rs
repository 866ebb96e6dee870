//! The tables of interned names, types, meshes, shardings, rules and signatures, and the text that spans
//! point into.

use super::{
    AlikeOps, Interner, MeshTable, Program, SignatureRules, SignatureTable, Span, TextPool, Type,
    TypeTable,
};
use crate::index::{MeshId, RuleId, ShardingId, StrId, TypeId};
use crate::mesh::Mesh;
use crate::op_sharding_rule::{OpShardingRule, RuleTable};
use crate::sharding::{ShardingTable, TensorSharding};
use std::sync::Arc;

/// Separate borrows of a program's tables: rules and meshes to read, shardings to add to.
pub struct Tables<'a> {
    /// Rules.
    pub rules: &'a RuleTable,
    /// Meshes.
    pub meshes: &'a MeshTable,
    /// Shardings.
    pub shardings: &'a mut ShardingTable,
}

impl Program {
    /// The source, and what passes have added to it.
    #[inline]
    pub fn text(&self) -> &TextPool {
        &self.text
    }
    /// Adds `text` to that of the program and returns its span.
    pub fn add_text(&mut self, text: &str) -> Span {
        self.text.add(text)
    }
    /// Names of ops, attributes, axes and symbols.
    #[inline]
    pub fn strings(&self) -> &Interner {
        &self.strings
    }
    /// The string of `id`.
    #[inline]
    pub fn str(&self, id: StrId) -> &str {
        self.strings.get(id)
    }
    /// The id of the string `text`, new if it was never seen.
    pub fn intern(&mut self, text: &str) -> StrId {
        self.strings.intern(text)
    }
    /// The id of the string `text`, if it was seen before.
    pub fn find_name(&self, text: &str) -> Option<StrId> {
        self.strings.find(text)
    }
    /// Strings to add to.
    pub fn strings_mut(&mut self) -> &mut Interner {
        &mut self.strings
    }
    /// Types.
    #[inline]
    pub fn types(&self) -> &TypeTable {
        &self.types
    }
    /// How `ty` is written.
    pub fn type_text(&self, ty: TypeId) -> &str {
        self.text.get(self.types.text(ty))
    }
    /// Leaves `alike`, the equivalence classes of ops, to the next run of a pass. Until then ops
    /// may be erased, but no op may change except in its shardings.
    pub fn hand_on(&mut self, alike: Arc<AlikeOps>) {
        self.alike = Some((alike, self.ops.len()));
    }
    /// The equivalence classes left by [`Program::hand_on`], unless ops were made since.
    pub fn take_handed_on(&mut self) -> Option<Arc<AlikeOps>> {
        let (alike, num_ops) = self.alike.take()?;
        (num_ops == self.ops.len()).then_some(alike)
    }
    /// The id of `ty`; `text` is how it is written, should it be new.
    pub fn intern_type(&mut self, ty: Type, text: &str) -> TypeId {
        if let Some(id) = self.types.find(&ty) {
            return id;
        }
        let span = self.text.add(text);
        self.types.intern(ty, span)
    }
    /// The id of `ty`; `span` is its text, should it be new.
    pub fn intern_type_at(&mut self, ty: Type, span: Span) -> TypeId {
        self.types.intern(ty, span)
    }
    /// Meshes: of `sdy.mesh` ops in program order, and inlined ones in order of appearance.
    #[inline]
    pub fn meshes(&self) -> &MeshTable {
        &self.meshes
    }
    /// The mesh of `id`.
    pub fn mesh(&self, id: MeshId) -> &Mesh {
        &self.meshes[id].mesh
    }
    /// The named mesh with this symbol.
    pub fn mesh_by_symbol(&self, symbol: StrId) -> Option<MeshId> {
        self.meshes.named(symbol)
    }
    /// Adds a mesh called `symbol`; the caller adds the `sdy.mesh` op.
    pub fn add_mesh(&mut self, symbol: StrId, mesh: Mesh) -> MeshId {
        self.meshes.add(symbol, mesh)
    }
    /// The mesh without a symbol that is equal to `mesh`, new if there is none.
    pub fn inlined_mesh(&mut self, mesh: &Mesh) -> MeshId {
        self.meshes.inlined(mesh)
    }
    /// Sets the axes and devices of mesh `id`, which has a symbol.
    pub fn define_mesh(&mut self, id: MeshId, mesh: Mesh) {
        self.meshes.define(id, mesh);
    }
    /// Removes the symbol of mesh `id` and returns it.
    pub fn take_mesh_symbol(&mut self, id: MeshId) -> Option<StrId> {
        self.meshes.take_symbol(id)
    }
    /// Shardings.
    #[inline]
    pub fn shardings(&self) -> &ShardingTable {
        &self.shardings
    }
    /// The id of `sharding`, new if it was never seen.
    #[inline]
    pub fn intern_sharding(&mut self, sharding: TensorSharding) -> ShardingId {
        self.shardings.intern(sharding)
    }
    /// Replaces the table of shardings by `table`, which extends it: all ids keep their meaning.
    pub fn adopt_shardings(&mut self, table: &ShardingTable) {
        self.shardings.clone_from(table);
    }
    /// Rules and meshes to read, and shardings to add to, at once.
    #[inline]
    pub fn tables(&mut self) -> Tables<'_> {
        Tables { rules: &self.rules, meshes: &self.meshes, shardings: &mut self.shardings }
    }
    /// The mesh that a sharding is over; `NONE` for the absent sharding.
    #[inline]
    pub fn mesh_of(&self, sharding: ShardingId) -> MeshId {
        self.shardings.get(sharding).map_or(MeshId::NONE, |sharding| sharding.mesh)
    }
    /// Rules.
    #[inline]
    pub fn rules(&self) -> &RuleTable {
        &self.rules
    }
    /// Rules to add to.
    #[inline]
    pub fn rules_mut(&mut self) -> &mut RuleTable {
        &mut self.rules
    }
    /// The id of `rule`, new if it was never seen.
    pub fn intern_rule(&mut self, rule: OpShardingRule) -> RuleId {
        self.rules.intern(rule)
    }
    /// What the rules of ops may depend on.
    #[inline]
    pub fn signatures(&self) -> &SignatureTable {
        &self.signatures
    }
    /// The rules of signatures.
    #[inline]
    pub fn signature_rules(&self) -> &SignatureRules {
        &self.signature_rules
    }
    /// The rules of signatures, for the source of rules to fill in.
    #[inline]
    pub fn signature_rules_mut(&mut self) -> &mut SignatureRules {
        &mut self.signature_rules
    }
}
