//! Whether the tree stays a red-black tree.

use super::*;

/// Black nodes on every way down from `n`; checks colours, parents and order on the way.
fn black_height(tree: &RedBlackTree, n: u32, in_order: &mut Vec<u32>) -> usize {
    if n == NIL {
        return 1;
    }
    let node = tree.node(n);
    assert_ne!(node.colour, Colour::Out);
    for child in node.children {
        if child != NIL {
            assert_eq!(tree.node(child).parent, n);
            assert!(node.colour == Colour::Black || tree.colour(child) == Colour::Black);
        }
    }
    let left = black_height(tree, node.children[0], in_order);
    in_order.push(n);
    let right = black_height(tree, node.children[1], in_order);
    assert_eq!(left, right, "black nodes on both ways down from {n}");
    left + usize::from(node.colour == Colour::Black)
}

fn assert_tree(tree: &RedBlackTree) {
    assert_eq!(tree.colour(NIL), Colour::Black);
    assert_eq!(tree.colour(tree.root), Colour::Black);
    let mut in_order = Vec::new();
    black_height(tree, tree.root, &mut in_order);
    assert_eq!(in_order.len(), tree.len);
    assert!(in_order.is_sorted_by_key(|&n| tree.node(n).key));
    let mut at = NIL;
    for n in in_order {
        assert_eq!((tree.node(at).next, tree.node(n).previous), (n, at));
        at = n;
    }
    assert_eq!((tree.node(at).next, tree.node(NIL).previous), (NIL, at));
}

/// Cormen et al., 13.1: the five properties, after each of many steps.
#[test]
fn it_stays_a_red_black_tree() {
    let (slots, mut dice) = (300, hourglass_dice::Dice::new(777));
    let mut tree = RedBlackTree::default();
    tree.reserve(300).unwrap();
    for sequence in 0..20_000 {
        let (slot, roll) = (dice.below(slots) as u32, dice.below(16));
        // Mostly in, then mostly out, in turn.
        if (roll < 12) == (sequence / 1_000 % 2 == 0) {
            tree.place(slot, Key { expiry: dice.within(0, 100), sequence });
        } else {
            let was_in = tree.expiry(slot).is_some();
            assert_eq!(tree.remove(slot), was_in);
        }
        assert_tree(&tree);
    }
}

/// Linux 7.1: a timer that stays between its neighbours is not moved.
#[test]
fn re_arming_between_the_neighbours_touches_nothing_else() {
    let mut tree = RedBlackTree::default();
    tree.reserve(3).unwrap();
    for (slot, expiry) in [(0, 10), (1, 20), (2, 30)] {
        tree.place(slot, Key { expiry, sequence: slot.into() });
    }
    let before: Vec<[u32; 2]> = tree.nodes.iter().map(|node| node.children).collect();
    tree.place(1, Key { expiry: 29, sequence: 3 });
    let after: Vec<[u32; 2]> = tree.nodes.iter().map(|node| node.children).collect();
    assert_eq!(before, after);
    assert_eq!(tree.expiry(1), Some(29));
    assert_tree(&tree);
}

#[test]
fn slots_without_room_are_not_placed() {
    let mut tree = RedBlackTree::default();
    let key = Key { expiry: 1, sequence: 1 };
    tree.place(0, key);
    tree.place(u32::MAX, key);
    assert!(tree.is_empty() && tree.first().is_none() && !tree.remove(0));
    assert_eq!(tree.expiry(u32::MAX), None);
    tree.reserve(1).unwrap();
    tree.place(0, key);
    assert_eq!(tree.first(), Some(MinEntry { slot: 0, expiry: 1 }));
}
