package rehearse

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// variant is a body as it may have been sent, and what was done to it since.
type variant struct {
	how  string
	body []byte
}

// variants undoes what programs do to a body: white space, escapes, the order of members,
// and several of these together.
func variants(body []byte) (out []variant) {
	add := func(how string, b []byte) {
		if len(b) > 0 && !bytes.Equal(b, body) {
			out = append(out, variant{how, b})
		}
	}
	text := string(body)
	add("a line break was added at its end", bytes.TrimRight(body, "\r\n"))
	add("its last line break was taken away", append(bytes.Clone(body), '\n'))
	add("its line breaks were changed", bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")))
	add("its line breaks were changed", bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n")))
	add("a byte order mark was added", bytes.TrimPrefix(body, []byte("\ufeff")))
	var inner string
	if json.Unmarshal(body, &inner) == nil {
		add("it was written as a JSON text inside JSON", []byte(inner))
	}
	if form, err := url.QueryUnescape(text); err == nil && !strings.HasPrefix(text, "{") {
		_, value, found := strings.Cut(form, "={")
		if found {
			add("it was sent on as a form", []byte("{"+value))
		}
		add("it was encoded for a URL", []byte(form))
	}
	var compact bytes.Buffer
	if json.Compact(&compact, bytes.TrimPrefix(body, []byte("\ufeff"))) != nil {
		return out
	}
	const anew = "it was parsed and written anew"
	c := compact.Bytes()
	add(anew+", with other white space", c)
	for _, letters := range []func([]byte) []byte{func(b []byte) []byte { return b }, unescape, escapeLetters} {
		for _, slashes := range []func([]byte) []byte{func(b []byte) []byte { return b }, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`\/`), []byte("/")) }} {
			b := slashes(letters(c))
			add(anew+", with other escapes", b)
			if ordered := reorder(b); ordered != nil {
				add(anew+", with its members in another order", ordered)
			}
		}
	}
	return out
}

var escapes = regexp.MustCompile(`(\\\\)|\\u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?`)

// unescape writes \u escapes of visible letters as the letters themselves.
func unescape(body []byte) []byte {
	return escapes.ReplaceAllFunc(body, func(m []byte) []byte {
		if m[1] == '\\' {
			return m
		}
		parts := strings.Split(string(m), `\u`)[1:]
		units := make([]uint16, len(parts))
		for i, p := range parts {
			n, _ := strconv.ParseUint(p, 16, 16)
			units[i] = uint16(n)
		}
		var out []byte
		for _, r := range utf16.Decode(units) {
			if r < ' ' || r == '"' || r == '\\' {
				return m
			}
			out = utf8.AppendRune(out, r)
		}
		return out
	})
}

// escapeLetters writes letters beyond ASCII as \u escapes, as some programs send them on.
func escapeLetters(body []byte) []byte {
	var out []byte
	for _, r := range string(body) {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = append(out, `\u`+strings.ToLower(strconv.FormatUint(0x10000|uint64(unit), 16)[1:])...)
		}
	}
	return out
}

// reorder writes the members of an event in the order of the service; nil if it is no event.
// The members of metadata stay as they are: nobody knows their order.
func reorder(body []byte) []byte {
	_, template := newBuilder(1, builderTime, nil).event("payment.success", "success")
	places := map[string]int{}
	if v, _, ok := readValue(template); ok {
		v.places("", places)
	}
	v, rest, ok := readValue(body)
	if !ok || len(rest) > 0 {
		return nil
	}
	return v.append(nil, "", places)
}
