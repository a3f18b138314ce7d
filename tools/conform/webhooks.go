package conform

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const wrongSecret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// register registers the driver's address and lets it serve. With "reserve" only
// the secret is made, and nothing is delivered but what the scenario delivers.
func (p *play) register(ctx context.Context, s *Step) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.addr = l.Addr().String()
	_ = l.Close()
	if s.Do == "reserve" {
		p.secrets = []string{"whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))}
	} else {
		body := map[string]any{"url": "http://" + p.addr + "/till", "events": []string{"*"}}
		if s.Secret == "own" { // the longest that may be
			body["secret"] = "whsec_" + base64.StdEncoding.EncodeToString([]byte(uuid() + uuid())[:64])
		}
		var made struct{ ID, Secret string }
		if err := p.books.call(ctx, "POST", "/webhook-endpoints", body, &made); err != nil {
			return err
		}
		p.endpoint, p.secrets = made.ID, []string{made.Secret}
		if s.Secret == "own" {
			if err := p.repeatEndpoint(ctx, body); err != nil {
				return err
			}
		}
	}
	p.served = true
	return p.serve(ctx)
}

// repeatEndpoint registers an endpoint with its own secret once more: nothing changes.
func (p *play) repeatEndpoint(ctx context.Context, body map[string]any) error {
	var again struct{ ID string }
	if err := p.books.call(ctx, "POST", "/webhook-endpoints", body, &again); err != nil || again.ID != p.endpoint {
		return fmt.Errorf("the same endpoint again is %s and not %s: %w", again.ID, p.endpoint, err)
	}
	own, _ := body["secret"].(string)
	p.secrets = []string{own}
	return nil
}

// disableEndpoint disables the endpoint, as days of failures would.
func (p *play) disableEndpoint(ctx context.Context) error {
	return p.books.call(ctx, "POST", "/sandbox/webhook-endpoints/"+p.endpoint+"/disable", nil, nil)
}

// rotateSecret gives the endpoint a new secret. The driver gets both, the new
// one alone ("new"), or still has the old one alone ("old").
func (p *play) rotateSecret(ctx context.Context, s *Step) error {
	var made struct{ Secret string }
	if err := p.books.call(ctx, "POST", "/webhook-endpoints/"+p.endpoint+"/rotate-secret", map[string]int{"overlap_seconds": s.Overlap}, &made); err != nil {
		return err
	}
	old := p.secrets[0]
	switch s.Secret {
	case "old":
	case "new":
		p.secrets = []string{made.Secret}
	default:
		p.secrets = []string{made.Secret, old}
	}
	return p.serve(ctx)
}

// deliver posts an event of the log to the driver, as the service would or as it
// never would.
func (p *play) deliver(ctx context.Context, s *Step) error {
	e, err := p.event(ctx, s.Order, s.Kind)
	if err != nil {
		return err
	}
	body, id := []byte(e.text), e.ID
	body, id, err = changed(body, id, s)
	if err != nil {
		return err
	}
	stamp := strconv.FormatInt(time.Now().Add(-time.Duration(s.Age)*time.Second).Unix(), 10)
	secret := p.secrets[0]
	if s.Secret == "wrong" {
		secret = wrongSecret
	}
	headers := http.Header{"Content-Type": {"application/json"}, "Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {sign(secret, id, stamp, body)}}
	sent := body
	switch s.Change {
	case "forged":
		sent = bytes.Replace(body, []byte(`"5000"`), []byte(`"9000"`), 1)
	case "two signatures":
		headers.Set("Webhook-Signature", sign(wrongSecret, id, stamp, body)+" "+headers.Get("Webhook-Signature"))
	case "no signature":
		headers.Del("Webhook-Signature")
	}
	times := max(s.Times, 1)
	errs := make([]error, times)
	var all sync.WaitGroup
	for i := range times {
		all.Add(1)
		post := func() {
			defer all.Done()
			errs[i] = p.post(ctx, sent, headers, s.Answer)
		}
		if s.AtOnce {
			go post()
		} else {
			post()
		}
	}
	all.Wait()
	if s.Answer < 0 {
		return nil // the driver dies of it
	}
	return errors.Join(errs...)
}

// changed writes an event anew, as a later release or another life would.
func changed(body []byte, id string, s *Step) ([]byte, string, error) {
	switch s.Change {
	case "spaces":
		return bytes.ReplaceAll(body, []byte(`","`), []byte("\" ,\n \"")), id, nil
	case "other amount":
		return bytes.ReplaceAll(body, []byte(`"value":"5000"`), []byte(`"value":"500"`)), id, nil
	case "other currency":
		return bytes.ReplaceAll(body, []byte(`"currency":"XAF"`), []byte(`"currency":"XOF"`)), id, nil
	case "unknown members":
		return bytes.Replace(body, []byte(`"status":`), []byte(`"blessing":{"deep":[1,null]},"status":`), 1), id, nil
	case "another id":
		other := id[:len(id)-4] + "ffff"
		return bytes.ReplaceAll(body, []byte(id), []byte(other)), other, nil
	case "large":
		return bytes.Replace(body, []byte(`"status":`), []byte(`"blessing":"`+strings.Repeat("x", 300<<10)+`","status":`), 1), id, nil
	case "unknown kind":
		other := id[:len(id)-4] + "eeee"
		body = bytes.ReplaceAll(body, []byte(id), []byte(other))
		return bytes.Replace(body, []byte(`"type":"`+s.Kind+`"`), []byte(`"type":"payment.blessed"`), 1), other, nil
	case "unknown status":
		other := id[:len(id)-4] + "dddd"
		body = bytes.ReplaceAll(body, []byte(id), []byte(other))
		body = bytes.Replace(body, []byte(`"type":"`+s.Kind+`"`), []byte(`"type":"payment.reviewing"`), 1)
		return bytes.Replace(body, []byte(`"status":"success"`), []byte(`"status":"reviewing"`), 1), other, nil
	case "not json":
		return []byte("hello"), id, nil
	}
	if !json.Valid(body) {
		return nil, "", errors.New("no JSON")
	}
	return body, id, nil
}

func sign(secret, id, stamp string, body []byte) string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// post delivers once; 0 is any answer.
func (p *play) post(ctx context.Context, body []byte, headers http.Header, want int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.addr+"/till", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = headers.Clone()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if want != 0 && res.StatusCode != want {
		return fmt.Errorf("the receiver answers %d, want %d", res.StatusCode, want)
	}
	return nil
}
