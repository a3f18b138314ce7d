package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"till"
	"till/account"
	"till/internal/door"
	"till/internal/jsonx"
)

// authorizeAndRead applies all checks before the handler, in order.
func (c *exchange) authorizeAndRead() error {
	if ready := c.s.Ready; ready != nil {
		if err := ready(); err != nil {
			return &till.Error{Code: till.CodeServiceUnavailable}
		}
	}
	if !c.route.Open {
		if err := c.authenticate(); err != nil {
			return err
		}
		if err := c.authorize(); err != nil {
			return err
		}
	}
	if c.route.Stores {
		if err := c.checkTestQuota(); err != nil {
			return err
		}
	}
	if err := c.checkQuery(); err != nil {
		return err
	}
	if c.route.Body == noBody {
		return nil
	}
	if err := c.checkContentType(); err != nil {
		return err
	}
	return c.readBody()
}

// authenticate opens the session of the key in the header. The limits come before the
// database: the client's limit if the key is known here, the address's limit otherwise.
func (c *exchange) authenticate() error {
	keys := c.r.Header["X-Api-Key"]
	if len(keys) == 0 || len(keys) == 1 && keys[0] == "" {
		c.Header()["Www-Authenticate"] = challenge
		return c.refuse(string(till.CodeMissingKey), &till.Error{Code: till.CodeMissingKey})
	}
	key := keys[0]
	if len(keys) > 1 {
		key = "" // several keys: none is chosen
	}
	if client, id, known := c.s.Accounts.KnownKey(key); known {
		c.client, c.keyID = client, id
		if err := c.limit(client); err != nil {
			return err
		}
		err := c.openSession(key)
		if till.ErrorCode(err) == till.CodeInvalidKey {
			c.s.addressLimits.failures.Take(door.Network(c.peer()), time.Now())
		}
		return err
	}
	err := c.lookUpKey(key, func() (failed bool, err error) {
		err = c.openSession(key)
		return till.ErrorCode(err) == till.CodeInvalidKey, err
	})
	if err != nil {
		return err
	}
	c.client, c.keyID = c.session.Client.ID, c.session.Key.ID
	return c.limit(c.client)
}

// openSession opens the session, from the cache if the route allows it.
func (c *exchange) openSession(key string) (err error) {
	if c.route.Fresh {
		c.session, err = c.s.Accounts.AuthenticateNow(c.r.Context(), key)
	} else {
		c.session, err = c.s.Accounts.Authenticate(c.r.Context(), key)
	}
	if till.ErrorCode(err) != till.CodeInvalidKey {
		return err
	}
	c.Header()["Www-Authenticate"] = challenge
	if k, ended := account.EndedKey(err); ended {
		c.client, c.keyID = k.ClientID, k.ID
		return c.refuse(refusedEnded, err)
	}
	return c.refuse(refusedUnknown, err)
}

// challenge says where the key belongs; RFC 9110 requires it with every 401.
var challenge = []string{`ApiKey realm="X-Api-Key"`}

// authorize decides whether the session may use the route.
func (c *exchange) authorize() error {
	client, key := c.session.Client, c.session.Key
	if client.Suspended {
		return &till.Error{Code: till.CodeClientSuspended}
	}
	if c.route.TestOnly && (client.Mode != till.Test || c.s.Sandbox == nil) {
		return errNoPath
	}
	if len(c.route.Scopes) > 0 && !slices.ContainsFunc(c.route.Scopes, key.Allows) {
		return till.Errorf(till.CodeInsufficientScope, "The key lacks the scopes %s; it needs one of them.", joinScopes(c.route.Scopes))
	}
	if key.Allows(c.route.Scope) || c.route.Self && c.r.PathValue("key_id") == key.ID {
		return nil
	}
	return till.Errorf(till.CodeInsufficientScope, "The key lacks the scope %s.", c.route.Scope)
}

func joinScopes(scopes []till.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

// A key in a URL is in the logs of every proxy on the way. It is rejected even beside a
// valid header, so that nobody learns to rely on it.
var (
	keyText    = regexp.MustCompile(`till_(?:live|test)_[0-9A-Za-z]+_[0-9A-Za-z]+`)
	keyStarts  = []string{"till_live_", "till_test_"}
	errKeyURL  = &till.Error{Code: till.CodeKeyInURL}
	keyNames   = []string{"apikey", "xapikey"}
	dropDashes = strings.NewReplacer("-", "", "_", "")
)

// maxFlagged is how many keys in one URL are checked.
const maxFlagged = 4

// checkURL parses the query and rejects an API key anywhere in the URL.
func (c *exchange) checkURL() error {
	u := c.r.URL
	if u.RawQuery == "" && !strings.Contains(u.Path, "till_") {
		return nil
	}
	c.query, c.queryErr = url.ParseQuery(u.RawQuery)
	texts, found := []string{u.Path, u.RawQuery}, false
	for name, values := range c.query {
		found = found || slices.Contains(keyNames, dropDashes.Replace(strings.ToLower(name)))
		texts = append(append(texts, name), values...)
	}
	var keys []string
	for _, text := range texts {
		if strings.Contains(text, keyStarts[0]) || strings.Contains(text, keyStarts[1]) {
			found = true
			keys = append(keys, keyText.FindAllString(text, maxFlagged)...)
		}
	}
	c.flag(keys)
	if found {
		return c.refuse(string(till.CodeKeyInURL), errKeyURL)
	}
	return nil
}

// flag marks keys in a URL as exposed: those that are known here, and one other, which is
// looked up like a key in the header. The answer is the same in any case.
func (c *exchange) flag(keys []string) {
	slices.Sort(keys)
	looked := false
	for i, key := range slices.Compact(keys) {
		if i == maxFlagged {
			return
		}
		_, _, known := c.s.Accounts.KnownKey(key)
		if _, _, _, whole := account.ParseKey(key); !whole || !known && looked {
			continue
		}
		flag := func() (bool, error) {
			genuine, err := c.s.Accounts.FlagExposed(c.auditContext(), key, account.SeenInURL, "")
			if err != nil {
				c.s.Log.Warn("exposed key not flagged", "request_id", c.id, "error", err)
			}
			return !genuine && err == nil, nil
		}
		if known {
			flag()
		} else {
			looked = true
			c.lookUpKey(key, flag)
			c.Header().Del("Retry-After") // retrying is useless
		}
	}
}

// checkContentType rejects a body that is not plain JSON. Compressed bodies are not
// accepted: a small one could expand to a large one.
func (c *exchange) checkContentType() error {
	if c.r.ContentLength == 0 {
		return nil
	}
	for _, v := range c.r.Header["Content-Encoding"] {
		if !strings.EqualFold(v, "identity") {
			return &till.Error{Code: till.CodeUnsupportedMediaType, Detail: "Send the body without Content-Encoding."}
		}
	}
	if values := c.r.Header["Content-Type"]; len(values) == 1 && isJSON(values[0]) {
		return nil
	}
	return &till.Error{Code: till.CodeUnsupportedMediaType}
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/json" {
		return false
	}
	for name, value := range params {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return true
}

// readBody reads the body into the exchange's buffer.
func (c *exchange) readBody() error {
	if c.r.ContentLength > jsonx.MaxBody {
		return c.closeConnection(&till.Error{Code: till.CodeBodyTooLarge})
	}
	if c.r.ContentLength != 0 {
		c.in = buffers.Get().(*buffer)
		b, err := appendAll(c.in.b[:0], &quotaReader{http.MaxBytesReader(c.ResponseWriter, c.r.Body, jsonx.MaxBody), c, c.s.bodies, c.session.Client.ID})
		c.in.b = b
		if err != nil {
			return c.readError(err)
		}
	}
	if len(c.body()) == 0 && c.route.Body == requiredBody {
		return malformed("", "A JSON object is expected, the body is empty.")
	}
	return nil
}

// appendAll is io.ReadAll into an existing buffer.
func appendAll(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			// Grow in few steps: a body is either small or up to the limit.
			b = append(make([]byte, 0, min(8*cap(b), jsonx.MaxBody+1)), b...)
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch err {
		case nil:
		case io.EOF:
			return b, nil
		default:
			return b, err
		}
	}
}

// readError returns why a body could not be read to its end. If the memory quota was full,
// the rest is skipped and the connection stays open, so that the client can retry on it.
func (c *exchange) readError(err error) error {
	var tooLarge *http.MaxBytesError
	var refused *till.Error
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &tooLarge):
		return c.closeConnection(&till.Error{Code: till.CodeBodyTooLarge})
	case errors.Is(err, os.ErrDeadlineExceeded):
		return c.closeConnection(&till.Error{Code: till.CodeRequestTimeout})
	}
	return c.closeConnection(malformed("", "The body ends too early or is not framed as HTTP says."))
}

// closeConnection closes the connection after the answer; the rest of the body is not read.
func (c *exchange) closeConnection(err error) error {
	c.Header()["Connection"] = []string{"close"}
	return err
}
