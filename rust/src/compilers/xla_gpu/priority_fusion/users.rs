//! The users of a node, in order.

use std::ops::Deref;

/// Nodes in increasing order.
#[derive(Clone, Debug, Default)]
pub struct Users(Vec<u32>);

impl Users {
    /// Adds `user`, unless it is there.
    pub fn insert(&mut self, user: u32) {
        // Users are found in program order.
        if self.0.last().is_none_or(|&last| last < user) {
            self.0.push(user);
        } else if let Err(at) = self.0.binary_search(&user) {
            self.0.insert(at, user);
        }
    }
    /// Removes `user`; returns whether it was there.
    pub fn remove(&mut self, user: u32) -> bool {
        let found = self.0.binary_search(&user);
        found.map(|at| self.0.remove(at)).is_ok()
    }
    /// Keeps the users for which `is_kept` holds, in order.
    pub fn retain(&mut self, is_kept: impl FnMut(&u32) -> bool) {
        self.0.retain(is_kept);
    }
}

impl Deref for Users {
    type Target = [u32];
    fn deref(&self) -> &[u32] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Users;

    #[test]
    fn users_are_in_order_and_there_once() {
        let mut users = Users::default();
        for user in [3, 7, 5, 3, 9, 5, 1] {
            users.insert(user);
        }
        assert_eq!(*users, [1, 3, 5, 7, 9]);
        assert!(users.remove(5) && !users.remove(5) && !users.remove(4));
        users.retain(|&user| user != 1);
        assert_eq!(*users, [3, 7, 9]);
    }
}
