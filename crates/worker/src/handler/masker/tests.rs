#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::*;

const SECRET: &str = "s3cr&t /v+l\"ü😀";

fn masked(secret: &str, text: &str) -> String {
    let masker = Masker::new([secret]);
    let whole = masker.text(text).into_owned();
    // However the bytes arrive, the result is the same.
    let masker = Arc::new(masker);
    for size in [1, 2, 3, 7, 64] {
        let mut stream = StreamMasker::new(Arc::clone(&masker));
        let mut found = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            stream.push(chunk, &mut |bytes| found.extend_from_slice(bytes));
        }
        stream.finish(&mut |bytes| found.extend_from_slice(bytes));
        assert_eq!(String::from_utf8(found).unwrap(), whole, "in pieces of {size}");
    }
    whole
}

#[test]
fn a_secret_is_masked_in_each_of_its_escaped_forms() {
    for form in [
        SECRET,
        "s3cr%26t%20%2Fv%2Bl%22%C3%BC%F0%9F%98%80",
        "s3cr%26t+%2fv%2bl%22%c3%bc%f0%9f%98%80",
        "s3cr&t%20/v+l%22ü😀",
        "s3cr&t /v+l\\\"ü😀",
        "s3cr\\u0026t \\/v+l\\u0022\\u00fc\\ud83d\\uDE00",
    ] {
        assert_eq!(masked(SECRET, &format!("a{form}b\n{form}")), "a***b\n***", "{form}");
    }
    for other in
        ["s3cr&t /v+l\"ü", "s3cr%26t%2", "S3CR&T /V+L\"ü😀", "\\", "%", "", "\\ud83d", "\\u00", "100% +1"]
    {
        assert_eq!(masked(SECRET, other), other);
    }
}

#[test]
fn a_secret_is_masked_in_base64_wherever_it_begins_and_with_line_breaks() {
    let secret = "correct>horse?battery~staple: 0123456789 0123456789 0123456789 0123456789";
    for before in ["", "a", "ab", "abc", "user:"] {
        for after in ["", "x", "yz", " and much more that follows"] {
            let text = format!("{before}{secret}{after}");
            for alphabet in [base64::STANDARD, base64::URL_SAFE] {
                let encoded = String::from_utf8(base64::form(text.as_bytes(), 0, alphabet)).unwrap();
                let result = masked(secret, &encoded);
                assert!(result.contains("***"), "{encoded}: {result}");
                // What is left are characters of what stands around it, and two that share bits with it.
                assert!(result.len() <= (before.len() + after.len()) * 4 / 3 + 6, "{encoded}: {result}");
                let wrapped: Vec<&str> =
                    encoded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
                assert_eq!(masked(secret, &wrapped.join("\n")).replace('\n', ""), result);
                assert_eq!(masked(secret, &wrapped.join("\r\n")).replace("\r\n", ""), result);
            }
        }
    }
}

#[test]
fn base64_has_the_forms_of_the_standard() {
    let form = |text: &str| String::from_utf8(base64::form(text.as_bytes(), 0, base64::STANDARD)).unwrap();
    assert_eq!(
        (form("abc"), form("foobar"), form("f>?~")),
        ("YWJj".into(), "Zm9vYmFy".into(), "Zj4/f".into())
    );
    assert_eq!(base64::forms(b"12345678").len(), 3, "both alphabets give the same");
}

#[test]
fn the_lines_of_a_secret_are_masked_alone_and_together() {
    let secret = "-----BEGIN KEY-----\nabcdefgh01234567\n  indented-value\nAb=\n-----END KEY-----\n";
    assert_eq!(masked(secret, secret), "***");
    assert_eq!(masked(secret, &secret.replace('\n', "\\n")), "***");
    assert_eq!(masked(secret, &secret.replace('\n', "\r\n")), "***\r\n***\r\n***\r\nAb=\r\n***\r\n");
    assert_eq!(masked(secret, "key: abcdefgh01234567, indented-value"), "key: ***, ***");
}

#[test]
fn secrets_that_overlap_leave_nothing() {
    let masker = Masker::new(["abcdefgh", "efghijkl", "abcdefghij"]);
    assert_eq!(masker.text("xabcdefghijkly"), "x***y");
    assert_eq!(masker.text("abcdefgh efghijkl"), "*** ***");
    assert_eq!(masker.text("abcdefghabcdefgh"), "******");
    assert_eq!(Masker::new(["short", "", "1234567"]).text("short 1234567"), "short 1234567");
}

#[test]
fn nothing_but_the_beginning_of_a_secret_is_kept_back() {
    let mut stream = StreamMasker::new(Arc::new(Masker::new(["abcdefgh"])));
    let mut push = |bytes: &str| {
        let mut found = Vec::new();
        stream.push(bytes.as_bytes(), &mut |part| found.extend_from_slice(part));
        String::from_utf8(found).unwrap()
    };
    assert_eq!(push("one line\n"), "one line\n");
    assert_eq!(push("x abcd"), "x ");
    assert_eq!(push("e\n"), "abcde\n");
    assert_eq!(push("abcdefg"), "");
    assert_eq!(push("h."), "***.");
}

#[test]
fn an_output_stays_json() {
    let masker = Masker::new(["12345678", "abcdefgh", "[\"one\",\"two\"]", "{\"k\":\"v\"},"]);
    for (json, expected) in [
        (
            r#"{"a":12345678,"abcdefgh":["xabcdefgh",true,null,1]}"#,
            r#"{"a":"***","***":["x***",true,null,1]}"#,
        ),
        (r#""a\nabcdefgh""#, r#""a\n***""#),
        (r#"["one","two"]"#, r#""***""#),
        (r#"[{"k":"v"},1]"#, r#""***""#),
        ("1", "1"),
    ] {
        assert_eq!(masker.json(json.to_owned()), expected);
    }
}

#[test]
fn a_masker_shows_no_secret_of_its_own() {
    assert!(!format!("{:?}", Masker::new(["abcdefgh"])).contains("abcdefgh"));
}
