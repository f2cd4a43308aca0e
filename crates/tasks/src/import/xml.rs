//! Elements and attributes of an XML file.
//!
//! Owns: syntax errors with their places, and naming an unknown element or attribute. Must not: know a tool.

use hourglass_time::Span;
use roxmltree::{Document, Node, ParsingOptions};

use super::Import;
use super::decimal::{Decimal, Round};
use crate::error::{Location, TaskSetError};

/// Nodes of a document, attributes not counted: a set of 10,000 tasks of AMALTHEA has fewer.
const MOST_NODES: u32 = 4_000_000;

/// Parses a text. A document type with entities of its own is refused.
pub(super) fn parse(text: &str) -> Import<Document<'_>> {
    let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| {
        let place = error.pos();
        TaskSetError::Syntax {
            line: place.row as usize,
            column: place.col as usize,
            message: format!("not well-formed XML: {error}"),
        }
    })
}

/// The name of the first element, without its prefix. It looks at the beginning only.
pub(super) fn root_name(text: &str) -> Option<String> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let after = rest.strip_prefix('<')?;
        let end = match after {
            _ if after.starts_with("!--") => "-->",
            _ if after.starts_with('?') => "?>",
            _ if after.starts_with('!') => ">",
            _ => {
                let end = after.find(|c: char| c.is_whitespace() || c == '>' || c == '/')?;
                let name = after.get(..end)?;
                let local = name.rsplit(':').next().unwrap_or(name);
                return (!local.is_empty()).then(|| local.to_owned());
            }
        };
        rest = after.split_once(end)?.1.trim_start();
    }
}

/// The place of an element: its kind, its name, its line.
pub(super) fn place(node: Node<'_, '_>) -> Location {
    let line = node.document().text_pos_at(node.range().start).row;
    let kind = node.tag_name().name();
    match node.attribute("name").or_else(|| node.attribute("id")) {
        Some(name) => Location::named(kind, name).within(format_args!("line {line}")),
        None => Location::part(kind).within(format_args!("line {line}")),
    }
}

/// The attribute, if it is there and not empty.
pub(super) fn attribute<'a>(node: Node<'a, '_>, key: &str) -> Option<&'a str> {
    node.attribute(key).map(str::trim).filter(|value| !value.is_empty())
}

pub(super) fn needed<'a>(node: Node<'a, '_>, key: &'static str) -> Import<&'a str> {
    attribute(node, key).ok_or_else(|| place(node).missing(key, "the format demands it"))
}

pub(super) fn bad(node: Node<'_, '_>, key: &str, value: &str, reason: &str) -> TaskSetError {
    place(node).bad(key, value, reason)
}

/// The error for an element that a set of tasks cannot represent.
pub(super) fn refused(node: Node<'_, '_>, what: &str) -> TaskSetError {
    place(node).contradiction(what)
}

pub(super) fn decimal(node: Node<'_, '_>, key: &str, value: &str) -> Import<Decimal> {
    Decimal::read(value).ok_or_else(|| bad(node, key, value, "give a number"))
}

/// A time in units of `unit_ns`, rounded; `inexact` is set where it had to be.
pub(super) fn time(
    node: Node<'_, '_>,
    key: &'static str,
    unit_ns: u128,
    round: Round,
    inexact: &mut bool,
) -> Import<Option<Span>> {
    let Some(value) = attribute(node, key) else { return Ok(None) };
    let number = decimal(node, key, value)?;
    let (span, exact) = number
        .span(unit_ns, 1, round)
        .ok_or_else(|| bad(node, key, value, "longer than 292 years"))?;
    *inexact |= !exact;
    Ok(Some(span))
}

pub(super) fn whole<T: std::str::FromStr>(node: Node<'_, '_>, key: &str, value: &str) -> Import<T> {
    let number = Decimal::read(value).and_then(|number| number.scaled(1, 1, Round::Down));
    let number = number.filter(|(_, exact)| *exact).and_then(|(n, _)| n.to_string().parse().ok());
    number.ok_or_else(|| bad(node, key, value, "give a whole number in range"))
}

pub(super) fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

pub(super) fn named<'a, 'i>(
    node: Node<'a, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    elements(node).filter(move |child| child.tag_name().name() == name)
}

/// Checks that every element below and every attribute is known.
pub(super) fn known(node: Node<'_, '_>, attributes: &[&str], children: &[&str]) -> Import<()> {
    if let Some(strange) = node.attributes().find(|a| !attributes.contains(&a.name())) {
        let text = format!(
            "the attribute '{}' is not supported; remove it if it does not matter",
            strange.name().escape_debug()
        );
        return Err(refused(node, &text));
    }
    match elements(node).find(|child| !children.contains(&child.tag_name().name())) {
        Some(strange) => {
            Err(refused(strange, "this element is not supported; remove it if it does not matter"))
        }
        None => Ok(()),
    }
}
