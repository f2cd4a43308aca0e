//! The paper's order: a red-black tree, as `hrtimers` keep their timers.
//!
//! Owns: finding places in the tree, the neighbours in order.
//! Must not: know about clocks, handles or payloads; balance (that is [`balance`]'s).
//!
//! Source: "Hrtimers and Beyond" (2006), section 4.2; the links to the neighbours and the re-arming
//! in place are those of Linux 7.1 (`timerqueue_linked`). In user space it is the slower order, one
//! cache miss a level; it is kept for the paper's mode and as a second opinion on the heap.

mod balance;

use std::collections::TryReserveError;

use super::{Key, MinEntry, PriorityStructure};

/// The node that stands for "none": the parent of the root, the child of the leaves, black, and in
/// the ring of neighbours between the last and the first.
const NIL: u32 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Red,
    Black,
    Out,
}

/// The node of slot `n - 1`; nodes name each other by number.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    parent: u32,
    children: [u32; 2],
    /// The neighbours in order, in a ring through [`NIL`].
    previous: u32,
    next: u32,
    colour: Colour,
}

impl Node {
    const OUT: Node = Node {
        key: Key { expiry: 0, sequence: 0 },
        parent: NIL,
        children: [NIL; 2],
        previous: NIL,
        next: NIL,
        colour: Colour::Out,
    };
}

/// A red-black tree with linked neighbours: 40 bytes a slot; the first is known in constant time,
/// placing and removing take logarithmic time, and moving a slot whose new key still lies between
/// those of its neighbours takes constant time.
#[derive(Clone, Debug)]
pub struct RedBlackTree {
    /// [`NIL`] first.
    nodes: Vec<Node>,
    root: u32,
    len: usize,
}

impl Default for RedBlackTree {
    fn default() -> RedBlackTree {
        let nil = Node { colour: Colour::Black, ..Node::OUT };
        RedBlackTree { nodes: vec![nil], root: NIL, len: 0 }
    }
}

impl RedBlackTree {
    #[inline]
    fn node(&self, n: u32) -> &Node {
        &self.nodes[n as usize]
    }

    #[inline]
    fn node_mut(&mut self, n: u32) -> &mut Node {
        &mut self.nodes[n as usize]
    }

    #[inline]
    fn child(&self, n: u32, side: Side) -> u32 {
        self.node(n).children[side as usize]
    }

    #[inline]
    fn set_child(&mut self, n: u32, side: Side, child: u32) {
        self.node_mut(n).children[side as usize] = child;
    }

    #[inline]
    fn colour(&self, n: u32) -> Colour {
        self.node(n).colour
    }

    #[inline]
    fn of(&self, slot: u32) -> Option<u32> {
        let n = slot.checked_add(1)?;
        ((n as usize) < self.nodes.len()).then_some(n)
    }

    /// Whether a node with this key would stay between its neighbours.
    fn fits(&self, n: u32, key: Key) -> bool {
        let Node { previous, next, .. } = *self.node(n);
        (previous == NIL || self.node(previous).key < key)
            && (next == NIL || key < self.node(next).key)
    }

    /// Puts a node that is out under the leaf where its key belongs.
    fn insert(&mut self, n: u32, key: Key) {
        let (mut parent, mut side) = (NIL, Side::Left);
        let mut at = self.root;
        while at != NIL {
            parent = at;
            side = if key < self.node(at).key { Side::Left } else { Side::Right };
            at = self.child(at, side);
        }
        let (previous, next) = match side {
            Side::Left => (self.node(parent).previous, parent),
            Side::Right => (parent, self.node(parent).next),
        };
        let colour = Colour::Red;
        *self.node_mut(n) = Node { key, parent, children: [NIL; 2], previous, next, colour };
        self.node_mut(previous).next = n;
        self.node_mut(next).previous = n;
        if parent == NIL {
            self.root = n;
        } else {
            self.set_child(parent, side, n);
        }
        self.len += 1;
        self.balance_after_insertion(n);
    }

    fn take_out(&mut self, n: u32) {
        let Node { previous, next, .. } = *self.node(n);
        self.unlink(n);
        self.node_mut(previous).next = next;
        self.node_mut(next).previous = previous;
        *self.node_mut(n) = Node::OUT;
        self.len -= 1;
    }
}

impl PriorityStructure for RedBlackTree {
    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        let nodes = slots.saturating_add(1);
        if nodes > self.nodes.len() {
            self.nodes.try_reserve_exact(nodes - self.nodes.len())?;
            self.nodes.resize(nodes, Node::OUT);
        }
        Ok(())
    }

    fn place(&mut self, slot: u32, key: Key) {
        let Some(n) = self.of(slot) else { return };
        if self.colour(n) == Colour::Out {
            self.insert(n, key);
        } else if self.fits(n, key) {
            self.node_mut(n).key = key;
        } else {
            self.take_out(n);
            self.insert(n, key);
        }
    }

    fn remove(&mut self, slot: u32) -> bool {
        match self.of(slot) {
            Some(n) if self.colour(n) != Colour::Out => {
                self.take_out(n);
                true
            }
            _ => false,
        }
    }

    #[inline]
    fn first(&self) -> Option<MinEntry> {
        let first = self.node(NIL).next;
        let slot = first.checked_sub(1)?;
        Some(MinEntry { slot, expiry: self.node(first).key.expiry })
    }

    fn expiry(&self, slot: u32) -> Option<i64> {
        let node = self.node(self.of(slot)?);
        (node.colour != Colour::Out).then_some(node.key.expiry)
    }

    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn prefetch(&self, slot: u32) {
        hourglass_sys::prefetch::prefetch(&self.nodes, (slot as usize).saturating_add(1));
    }
}

#[cfg(test)]
mod tests;
