//! Keeping a red-black tree balanced: rotations and colours.
//!
//! Owns: that no red node has a red child, that every way from the root down passes as many black
//! nodes, and that both hold again after one node has come or gone.
//! Must not: compare keys.
//!
//! The textbook's algorithms (Cormen, Leiserson, Rivest, Stein, chapter 13) with its sentinel, each
//! written once for both sides.

use super::{Colour, NIL, RedBlackTree, Side};

impl RedBlackTree {
    fn side(&self, n: u32) -> Side {
        let parent = self.node(n).parent;
        if self.child(parent, Side::Left) == n { Side::Left } else { Side::Right }
    }

    /// Hangs `new` where `old` hangs; `old` keeps its own links.
    fn replace(&mut self, old: u32, new: u32) {
        let parent = self.node(old).parent;
        if parent == NIL {
            self.root = new;
        } else {
            let side = self.side(old);
            self.set_child(parent, side, new);
        }
        // Also of the sentinel: removal asks where it hangs.
        self.node_mut(new).parent = parent;
    }

    /// Gives `n` a child there, which may be the sentinel.
    fn hang(&mut self, n: u32, side: Side, child: u32) {
        self.set_child(n, side, child);
        self.node_mut(child).parent = n;
    }

    /// Turns `n` down to `side`; its other child takes its place.
    fn rotate(&mut self, n: u32, side: Side) {
        let up = self.child(n, side.other());
        let between = self.child(up, side);
        self.set_child(n, side.other(), between);
        if between != NIL {
            self.node_mut(between).parent = n;
        }
        self.replace(n, up);
        self.hang(up, side, n);
    }

    pub(super) fn balance_after_insertion(&mut self, mut n: u32) {
        while self.colour(self.node(n).parent) == Colour::Red {
            let parent = self.node(n).parent;
            let grandparent = self.node(parent).parent;
            let side = self.side(parent);
            let uncle = self.child(grandparent, side.other());
            if self.colour(uncle) == Colour::Red {
                self.node_mut(parent).colour = Colour::Black;
                self.node_mut(uncle).colour = Colour::Black;
                self.node_mut(grandparent).colour = Colour::Red;
                n = grandparent;
                continue;
            }
            if self.side(n) != side {
                n = parent;
                self.rotate(n, side);
            }
            let parent = self.node(n).parent;
            self.node_mut(parent).colour = Colour::Black;
            self.node_mut(grandparent).colour = Colour::Red;
            self.rotate(grandparent, side.other());
        }
        let root = self.root;
        self.node_mut(root).colour = Colour::Black;
    }

    /// Takes `n` out of the tree; its neighbours in order are still linked with it.
    pub(super) fn unlink(&mut self, n: u32) {
        let [left, right] = self.node(n).children;
        let (lost, heir);
        if left == NIL || right == NIL {
            heir = if left == NIL { right } else { left };
            lost = self.colour(n);
            self.replace(n, heir);
        } else {
            // With two children the next in order has no left one, and takes the place of `n`.
            let next = self.node(n).next;
            heir = self.child(next, Side::Right);
            lost = self.colour(next);
            if self.node(next).parent == n {
                self.node_mut(heir).parent = next;
            } else {
                self.replace(next, heir);
                self.hang(next, Side::Right, right);
            }
            self.replace(n, next);
            self.hang(next, Side::Left, left);
            self.node_mut(next).colour = self.colour(n);
        }
        if lost == Colour::Black {
            self.balance_after_removal(heir);
        }
    }

    /// After the ways through `n` have lost a black node.
    fn balance_after_removal(&mut self, mut n: u32) {
        while n != self.root && self.colour(n) == Colour::Black {
            let parent = self.node(n).parent;
            let side = self.side(n);
            let mut sibling = self.child(parent, side.other());
            if self.colour(sibling) == Colour::Red {
                self.node_mut(sibling).colour = Colour::Black;
                self.node_mut(parent).colour = Colour::Red;
                self.rotate(parent, side);
                sibling = self.child(parent, side.other());
            }
            let near = self.child(sibling, side);
            let far = self.child(sibling, side.other());
            if self.colour(near) == Colour::Black && self.colour(far) == Colour::Black {
                self.node_mut(sibling).colour = Colour::Red;
                n = parent;
                continue;
            }
            if self.colour(far) == Colour::Black {
                self.node_mut(near).colour = Colour::Black;
                self.node_mut(sibling).colour = Colour::Red;
                self.rotate(sibling, side.other());
                sibling = self.child(parent, side.other());
            }
            self.node_mut(sibling).colour = self.colour(parent);
            self.node_mut(parent).colour = Colour::Black;
            let far = self.child(sibling, side.other());
            self.node_mut(far).colour = Colour::Black;
            self.rotate(parent, side);
            n = self.root;
        }
        self.node_mut(n).colour = Colour::Black;
    }
}
