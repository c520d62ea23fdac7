use super::*;

#[test]
fn messages_name_the_allowed_values() {
    let text = BuildError::from(QuotaError::LimitTooLarge { limit: 99_000_000 }).to_string();
    assert!(text.contains("99000000") && text.contains("1048576"), "{text}");
}

#[test]
fn the_message_names_the_allowed_values() {
    let text = CostExceedsLimit::new(7, 5).to_string();
    assert!(text.contains("cost 7") && text.contains("limit of 5"), "{text}");
}
