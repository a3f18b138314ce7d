package rehearse

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxCapture bounds a captured request.
const maxCapture = 2 << 20

// Capture is a request as a handler received it, or as a log has it.
type Capture struct {
	Header http.Header // with the names as they came
	Body   []byte
}

// ReadCapture reads a request: headers, an empty line and the body, with or without a
// request line; or JSON with the members headers and body.
func ReadCapture(r io.Reader) (*Capture, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxCapture+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxCapture:
		return nil, fmt.Errorf("the request has more than %d bytes", maxCapture)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return readJSONCapture(text)
	}
	c := &Capture{Header: http.Header{}}
	lines := bufio.NewReader(bytes.NewReader(text))
	for n := 0; ; n++ {
		line, err := lines.ReadString('\n')
		line = strings.TrimRight(line, "\r\n")
		if line == "" && n > 0 {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if fields := strings.Fields(line); n == 0 && len(fields) >= 2 && strings.Contains(fields[0], "POST") || n == 0 && line == "" {
			continue // the request line
		}
		if !ok || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("line %d is no header: write the headers, an empty line and the body as they came", n+1)
		}
		c.Header[name] = append(c.Header[name], strings.TrimSpace(value))
		if err != nil {
			break
		}
	}
	c.Body, err = io.ReadAll(lines)
	return c, err
}

// readJSONCapture reads what many programs log of a request.
func readJSONCapture(text []byte) (*Capture, error) {
	var in struct {
		Headers map[string]any  `json:"headers"`
		Body    json.RawMessage `json:"body"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a timestamp keeps its digits
	if err := d.Decode(&in); err != nil || in.Headers == nil {
		return nil, errors.New("the JSON has no headers: as {\"headers\": {…}, \"body\": \"…\"}, with the body as a text")
	}
	c := &Capture{Header: http.Header{}, Body: in.Body}
	for name, value := range in.Headers {
		if list, ok := value.([]any); ok {
			for _, v := range list {
				c.Header[name] = append(c.Header[name], fmt.Sprint(v))
			}
			continue
		}
		c.Header[name] = []string{fmt.Sprint(value)}
	}
	var body string
	if json.Unmarshal(in.Body, &body) == nil { // otherwise the log holds parsed JSON, which explain says
		c.Body = []byte(body)
	}
	return c, nil
}
