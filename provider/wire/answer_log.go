package wire

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"time"

	"till/provider"
)

// AnswerLog logs operators' answers that cannot be read, so that a person can learn an
// operator's new codes. It does not log all of them: when an operator breaks, all of its
// answers do.
type AnswerLog struct {
	log        *slog.Logger
	now        func() time.Time
	connection string

	mu   sync.Mutex
	last map[string]time.Time
}

// logInterval is the shortest time between two logged answers of one operation.
const logInterval = time.Minute

// maxLogged is how many bytes of an answer are logged.
const maxLogged = 512

// NewAnswerLog returns the log of a connection.
func NewAnswerLog(d provider.Deps) *AnswerLog {
	c := &AnswerLog{log: d.Log, now: d.Now, connection: d.Connection, last: map[string]time.Time{}}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c
}

// Unreadable logs an answer, at most once a minute for each operation, without personal
// data and secrets.
func (c *AnswerLog) Unreadable(operation string, r *Reply, why error) {
	now := c.now()
	c.mu.Lock()
	last, seen := c.last[operation]
	if seen && now.Sub(last) < logInterval {
		c.mu.Unlock()
		return
	}
	c.last[operation] = now
	c.mu.Unlock()
	c.log.Warn("operator answer unreadable", "connection", c.connection, "operation", operation,
		"status", r.Status, "type", Truncate(r.Header.Get("Content-Type"), 60), "length", len(r.Body), "error", why, "answer", Redact(r.Body))
}

// ReadToken reads the answer to a token call. It logs an answer that has neither a
// token nor a refusal of the credentials.
func (c *AnswerLog) ReadToken(operation string, r *Reply, read func(*Reply) (string, time.Duration, error)) (string, time.Duration, error) {
	token, life, err := read(r)
	if err != nil && !errors.Is(err, provider.ErrCredentials) {
		c.Unreadable(operation, r, err)
	}
	return token, life, err
}

// loggedKeys are the members whose values are logged: codes of the operator's, never
// personal data.
var loggedKeys = map[string]bool{
	"status": true, "code": true, "statusCode": true, "status_code": true, "reason": true, "error": true, "errorCode": true,
	"response_code": true, "responseCode": true, "result_code": true, "resultCode": true, "ResultCode": true, "ResponseCode": true,
	"failureCode": true, "success": true, "currency": true, "token_type": true, "expires_in": true, "nextStep": true,
}

// Redact returns the beginning of an answer as a log may show it. Of JSON, whole or cut
// off, it keeps the structure and the values of loggedKeys. Of any other text it removes
// numbers and long runs of characters.
func Redact(body []byte) string {
	body = bytes.TrimSpace(bytes.ToValidUTF8(body[:min(len(body), 4*maxLogged)], []byte("?")))
	if len(body) == 0 {
		return ""
	}
	var out []byte
	if body[0] == '{' || body[0] == '[' || body[0] == '"' {
		out = redactJSON(body)
	} else {
		out = redactText(body)
	}
	return Truncate(string(out), maxLogged)
}

func redactJSON(b []byte) []byte {
	var out []byte
	key := ""
	for i := 0; i < len(b) && len(out) < maxLogged; {
		switch c := b[i]; {
		case c == '"':
			end, closed := stringEnd(b, i)
			text := b[i:end]
			if rest := bytes.TrimLeft(b[end:], " \t\r\n"); closed && len(rest) > 0 && rest[0] == ':' {
				key = string(text[1 : len(text)-1])
				if !looksLikeCode(key) {
					text = []byte(`"***"`)
				}
				out = append(out, text...)
			} else if closed && loggedKeys[key] && looksLikeCode(string(text[1:len(text)-1])) {
				out = append(out, text...)
			} else {
				out = append(out, `"***"`...)
			}
			i = end
		case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
			end := i
			for end < len(b) && !bytes.ContainsRune([]byte(",:{}[]\" \t\r\n"), rune(b[end])) {
				end++
			}
			if word := b[i:end]; len(word) <= 5 {
				out = append(out, word...)
			} else {
				out = append(out, "***"...)
			}
			i = end
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// stringEnd returns the end of the string that begins at i, and whether it has one.
func stringEnd(b []byte, i int) (int, bool) {
	for j := i + 1; j < len(b); j++ {
		switch b[j] {
		case '\\':
			j++
		case '"':
			return j + 1, true
		}
	}
	return len(b), false
}

// looksLikeCode reports whether a text looks like an operator's code.
func looksLikeCode(s string) bool {
	digits := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case !alphanumeric(c) && c != '_' && c != '-' && c != '.' && c != ' ' && c != '/':
			return false
		}
	}
	// A code may end in digits, but a number alone may be a phone number.
	return len(s) <= 48 && (digits < 6 || digits < len(s) && len(s) <= 16)
}

// redactText keeps words and tags. A run of digits, or a long run of any characters, may be
// a phone number, an account or a token.
func redactText(b []byte) []byte {
	var out []byte
	for i := 0; i < len(b) && len(out) < maxLogged; {
		if !alphanumeric(b[i]) {
			out = append(out, b[i])
			i++
			continue
		}
		end, digits := i, 0
		for end < len(b) && (alphanumeric(b[end]) || bytes.IndexByte([]byte("+/=_-."), b[end]) >= 0) {
			if b[end] >= '0' && b[end] <= '9' {
				digits++
			}
			end++
		}
		if word := b[i:end]; len(word) > 20 || digits > 3 {
			out = append(out, "***"...)
		} else {
			out = append(out, word...)
		}
		i = end
	}
	return out
}
