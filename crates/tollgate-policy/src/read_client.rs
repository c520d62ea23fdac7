//! Reads the `[client]` of a policy file, and writes it.

use core::fmt;

use serde::Deserialize;
use tollgate_address::{ClientAddress, TrustedProxies};
use toml::Spanned;

use crate::error::PolicyProblem;
use crate::placed::{Placed, at};
use crate::quoted::Quoted;

/// The table in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileClient {
    trusted_proxies: Option<Spanned<Vec<Spanned<String>>>>,
    header: Option<Spanned<String>>,
    ipv6_prefix: Option<Spanned<u8>>,
}

/// The header field of proxies, unless the file names another.
const USUAL_HEADER: &str = "x-forwarded-for";

/// Who a client is.
pub(crate) fn client_of(file: &FileClient) -> Result<ClientAddress, Placed> {
    let client = match (&file.trusted_proxies, &file.header) {
        (None, None) => ClientAddress::peer(),
        (None, Some(header)) => return Err(at(header, PolicyProblem::HeaderWithoutProxies)),
        (Some(networks), header) => {
            let proxies = proxies_of(networks)?;
            match header.as_ref().map_or(USUAL_HEADER, |header| header.get_ref()).to_ascii_lowercase().as_str() {
                USUAL_HEADER => ClientAddress::behind(proxies),
                "forwarded" => ClientAddress::behind_forwarded(proxies),
                name => {
                    let place = header.as_ref().map_or(networks.span(), Spanned::span).start;
                    ClientAddress::behind_header(proxies, name).map_err(|error| (place, error.into()))?
                }
            }
        }
    };
    match &file.ipv6_prefix {
        None => Ok(client),
        Some(prefix) => client.ipv6_prefix(*prefix.get_ref()).map_err(|error| at(prefix, error)),
    }
}

/// The proxies in these networks. An error is at the first that does not go with those before it.
fn proxies_of(networks: &Spanned<Vec<Spanned<String>>>) -> Result<TrustedProxies, Placed> {
    let all = networks.get_ref();
    let upto = |count: usize| TrustedProxies::new(all[..count].iter().map(|text| text.get_ref()));
    upto(all.len()).map_err(|error| match (1..=all.len()).find(|&count| upto(count).is_err()) {
        Some(count) => at(&all[count - 1], error),
        None => at(networks, error),
    })
}

/// Writes the table that is read as this; nothing for what holds without one.
pub(crate) fn write_client(f: &mut fmt::Formatter<'_>, client: &ClientAddress) -> fmt::Result {
    if *client == ClientAddress::default() {
        return Ok(());
    }
    writeln!(f, "\n[client]")?;
    if let Some(proxies) = client.proxies() {
        let networks: Vec<String> = proxies.to_texts().iter().map(|text| Quoted(text).to_string()).collect();
        writeln!(f, "trusted_proxies = [{}]", networks.join(", "))?;
    }
    if let Some(header) = client.header().filter(|header| *header != USUAL_HEADER) {
        writeln!(f, "header = {}", Quoted(header))?;
    }
    if client.prefix() != ClientAddress::default().prefix() {
        writeln!(f, "ipv6_prefix = {}", client.prefix())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tollgate_address::ClientConfigError;

    use super::*;
    use crate::Policy;

    const DIMENSION: &str = "[[dimension]]\nname = \"client\"\nquota = [{ limit = 5, per = \"1m\" }]\n";

    #[test]
    fn every_way_to_say_who_a_client_is_is_read_and_printed_and_read() {
        let proxies = || TrustedProxies::new(["10.0.0.0/8", "2001:db8::1", "unix"]).unwrap();
        let list = "trusted_proxies = [\"10.0.0.0/8\", \"2001:db8::1\", \"unix\"]";
        let real = ClientAddress::behind_header(proxies(), "x-real-ip").unwrap();
        for (table, expected) in [
            ("", ClientAddress::peer()),
            ("ipv6_prefix = 64", ClientAddress::peer()),
            ("ipv6_prefix = 56", ClientAddress::peer().ipv6_prefix(56).unwrap()),
            (list, ClientAddress::behind(proxies())),
            (&format!("{list}\nheader = \"X-Forwarded-For\""), ClientAddress::behind(proxies())),
            (&format!("{list}\nheader = \"Forwarded\""), ClientAddress::behind_forwarded(proxies())),
            (&format!("{list}\nheader = \"X-Real-IP\"\nipv6_prefix = 128"), real.ipv6_prefix(128).unwrap()),
        ] {
            let policy = Policy::from_toml(&format!("[client]\n{table}\n{DIMENSION}")).unwrap();
            assert_eq!(*policy.client(), expected, "{table}");
            assert_eq!(Policy::from_toml(&policy.to_string()).unwrap(), policy, "{policy}");
            assert_eq!(*policy.only(["client"]).unwrap().client(), expected);
        }
        assert_eq!(*Policy::from_toml(DIMENSION).unwrap().client(), ClientAddress::peer());
    }

    #[test]
    fn a_mistake_is_told_with_its_place_and_a_remedy() {
        let config = |error| PolicyProblem::Client(error);
        let text = |text: &str| text.into();
        for (table, line, column, problem) in [
            (
                "trusted_proxies = [\"10.0.0.0/8\",\n  \"10.1.0.0/16\"]",
                3,
                3,
                config(ClientConfigError::Overlap { text: text("10.1.0.0/16"), other: text("10.0.0.0/8") }),
            ),
            (
                "trusted_proxies = [\"192.0.2.7\", \"::ffff:192.0.2.7\"]",
                2,
                33,
                config(ClientConfigError::Overlap { text: text("::ffff:192.0.2.7"), other: text("192.0.2.7") }),
            ),
            (
                "trusted_proxies = [\"192.0.2.7/24\"]",
                2,
                20,
                config(ClientConfigError::BitsAfterPrefix { text: text("192.0.2.7/24") }),
            ),
            ("trusted_proxies = [\"2000::/3\"]", 2, 20, config(ClientConfigError::TooWide { text: text("2000::/3") })),
            (
                "trusted_proxies = [\"example.com\"]",
                2,
                20,
                config(ClientConfigError::NotANetwork { text: text("example.com") }),
            ),
            ("trusted_proxies = []", 2, 19, config(ClientConfigError::NoNetworks)),
            (
                "trusted_proxies = [\"10.0.0.0/8\"]\nheader = \"x real ip\"",
                3,
                10,
                config(ClientConfigError::HeaderName { name: text("x real ip") }),
            ),
            ("header = \"x-real-ip\"", 2, 10, PolicyProblem::HeaderWithoutProxies),
            ("ipv6_prefix = 16", 2, 15, config(ClientConfigError::Ipv6Prefix { prefix: 16 })),
        ] {
            let error = Policy::from_toml(&format!("[client]\n{table}\n{DIMENSION}")).unwrap_err();
            assert_eq!((error.line(), error.column(), error.problem()), (line, column, &problem), "{table}");
            let words = error.to_string();
            assert!(["give", "set", "leave", "name"].iter().any(|remedy| words.contains(remedy)), "{words}");
        }
        for (table, line, words) in [
            ("proxies = [\"10.0.0.0/8\"]", 2, "unknown field `proxies`, expected one of `trusted_proxies`"),
            ("trusted_proxies = \"10.0.0.0/8\"", 2, "lists in one"),
            ("ipv6_prefix = 300", 2, "write a whole number from 32 to 128"),
        ] {
            let error = Policy::from_toml(&format!("[client]\n{table}\n{DIMENSION}")).unwrap_err();
            assert!(error.line() == line && error.to_string().contains(words), "{error}");
        }
    }
}
