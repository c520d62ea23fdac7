use super::*;

#[test]
fn durations_are_read_as_people_write_them() {
    let of = |text| parse_duration(text).unwrap();
    assert_eq!(of("500ms"), Duration::from_millis(500));
    assert_eq!(of("60s"), Duration::from_secs(60));
    assert_eq!(of(" 1m "), Duration::from_secs(60));
    assert_eq!(of("1.5h"), Duration::from_secs(90 * 60));
    assert_eq!(of("1h30m"), Duration::from_secs(90 * 60));
    assert_eq!(of("1 h 30 min"), Duration::from_secs(90 * 60));
    assert_eq!(of("1d"), Duration::from_secs(24 * 60 * 60));
    assert_eq!(of("2w"), Duration::from_secs(14 * 24 * 60 * 60));
    assert_eq!(of("7ns"), Duration::from_nanos(7));
    assert_eq!(of("1.25us"), Duration::from_nanos(1250));
    assert_eq!(of("0.000000001s"), Duration::from_nanos(1));
    assert_eq!(of("0s"), Duration::ZERO);
}

#[test]
fn an_invalid_duration_has_a_remedy() {
    for (text, expected) in [("60", "60s"), ("", "10s"), ("soon", "10s"), ("-5s", "negative"), ("1mo", "months")] {
        let error = parse_duration(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    for text in ["1.5.5s", ".s", "1.s", "s", "1s;", "1x", "1s2", "٣s", "1 2s"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
    assert_eq!(parse_duration("0.5ns"), Err(DurationError::TooFine));
    assert_eq!(parse_duration("1.0000000001s"), Err(DurationError::TooFine));
    assert_eq!(parse_duration("99999999999999999999999999w"), Err(DurationError::TooLong));
    assert_eq!(
        parse_duration(&"9".repeat(99).replacen("9", "9w", 1)),
        Err(DurationError::NoUnit { number: "9".repeat(98) })
    );
}

#[test]
fn printed_durations_are_read_again() {
    for (nanos, text) in [
        (0, "0s"),
        (1, "1ns"),
        (10_000_000_000, "10s"),
        (5_400_000_000_000, "1h30m"),
        (1_500_000_000, "1s500ms"),
        (86_400_000_000_000 * 400 + 1_001, "400d1us1ns"),
    ] {
        let duration = Duration::from_nanos(nanos);
        assert_eq!(format_duration(duration), text);
        assert_eq!(parse_duration(text), Ok(duration));
    }
    assert_eq!(parse_duration(&format_duration(Duration::MAX)), Ok(Duration::MAX));
}
