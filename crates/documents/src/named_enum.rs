//! Enums that list their values, and the names of these.

/// Defines an enum and writes the name of each value beside it: `Worse => "worse"`.
///
/// The enum has `ALL` (its values in their order), `NAMES`, `name` and `from_name`. Declared as `serde enum`, it is
/// serialised by these names. Without names it has `ALL` alone.
///
/// ```
/// hourglass_documents::named_enum! {
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub serde enum Verdict {
///         /// It became slower.
///         Worse => "worse",
///         NoBound => "no_bound",
///     }
/// }
///
/// assert_eq!(Verdict::ALL, [Verdict::Worse, Verdict::NoBound]);
/// assert_eq!(Verdict::from_name("no_bound"), Some(Verdict::NoBound));
/// assert_eq!(serde_json::to_value(Verdict::Worse).unwrap(), Verdict::Worse.name());
/// ```
#[macro_export]
macro_rules! named_enum {
    ($(#[$meta:meta])* $vis:vis serde enum $Name:ident {
        $($(#[$about:meta])* $Value:ident $(= $code:literal)? => $name:literal),+ $(,)?
    }) => {
        $crate::named_enum! {
            $(#[$meta])*
            #[derive(::serde::Serialize, ::serde::Deserialize)]
            $vis enum $Name {
                $($(#[$about])* #[serde(rename = $name)] $Value $(= $code)? => $name),+
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $Name:ident {
        $($(#[$about:meta])* $Value:ident $(= $code:literal)? => $name:literal),+ $(,)?
    }) => {
        $crate::named_enum! {
            $(#[$meta])*
            $vis enum $Name {
                $($(#[$about])* $Value $(= $code)?),+
            }
        }

        #[allow(dead_code, reason = "not every enum is read back")]
        impl $Name {
            /// The names of all values, in their order.
            $vis const NAMES: [&'static str; $Name::ALL.len()] = [$($name),+];

            /// The name of the value.
            #[must_use]
            $vis const fn name(self) -> &'static str {
                match self {
                    $($Name::$Value => $name),+
                }
            }

            /// The value with this name.
            #[must_use]
            $vis fn from_name(name: &str) -> Option<$Name> {
                $Name::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $Name:ident {
        $($(#[$about:meta])* $Value:ident $(= $code:literal)?),+ $(,)?
    }) => {
        $(#[$meta])*
        $vis enum $Name {
            $($(#[$about])* $Value $(= $code)?),+
        }

        impl $Name {
            /// All values, in their order.
            $vis const ALL: [$Name; [$(stringify!($Value)),+].len()] = [$($Name::$Value),+];
        }
    };
}
