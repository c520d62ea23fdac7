use super::*;

#[test]
fn messages_name_the_allowed_values() {
    let text = BuildError::from(QuotaError::LimitTooLarge { limit: 99_000_000 }).to_string();
    assert!(text.contains("99000000") && text.contains("1048576"), "{text}");
}
