// Package jsonx is the one strict JSON decoder: every body that comes from
// outside, a client's request or an operator's callback, is read here and
// nowhere else, so that all of them are refused for the same reasons.
//
//	bytes ─ scan (depth, NUL) ─ json.Unmarshal ─ value
//	              └──── on failure ────┴─ *Error{Pointer, Detail}
//
// Promises of Decode:
//
//   - The input is exactly one object: UTF-8 without a byte order mark, no
//     duplicate names, no lone surrogates, no NUL in any form, nothing after it,
//     and at most MaxDepth levels deep.
//   - Names match exactly. Unknown members are ignored, but they obey the same
//     rules, so a body means the same to a release that knows them.
//   - An error says where and why, and never repeats a value: bodies hold phone
//     numbers, and errors end up in logs.
//
// It does not bound the length: who reads from the network does, at MaxBody.
//
// A field of type jsontext.Value keeps the raw text of its value. Canonical
// turns such a text into bytes that are equal when the values are, which is how
// a retried body is recognised.
//
// Start reading at decode.go.
package jsonx
