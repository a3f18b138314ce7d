// Package jsonx is the one strict JSON decoder for bodies that clients send, so
// that all of them are rejected for the same reasons.
//
//	bytes ─ scan (depth, NUL) ─ json.Unmarshal ─ value
//	              └──── on failure ────┴─ *Error{Pointer, Detail}
//
// Decode promises:
//
//   - The input is exactly one object: UTF-8 without a byte order mark, no
//     duplicate names, no lone surrogates, no NUL in any form, nothing after it,
//     and at most MaxDepth levels deep.
//   - Names match exactly. Unknown members are ignored, but they obey the same
//     rules, so a body means the same to a release that knows them. DecodeKnown
//     says which they are.
//   - An error says where and why, and never repeats a value: bodies hold phone
//     numbers, and errors are logged.
//
// It does not limit the length: the reader of the network does, at MaxBody.
//
// A field of type jsontext.Value keeps the raw text of its value. Canonical
// converts such a text into bytes that are equal when the values are equal. That
// is how a retried body is recognised.
//
// Start reading at decode.go.
package jsonx
