use super::*;

#[test]
fn the_message_names_the_allowed_values() {
    let text = CostExceedsLimit::new(7, 5).to_string();
    assert!(text.contains("cost 7") && text.contains("limit of 5"), "{text}");
}
