package acmetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

// challengeTimeout is how long a client may take to answer a challenge.
const challengeTimeout = time.Minute

// tryChallenge connects to a client, and returns nil if it proves that the name is its own.
func tryChallenge(kind, address, name, token, proof string) error {
	ctx, cancel := context.WithTimeout(context.Background(), challengeTimeout)
	defer cancel()
	switch {
	case address == "":
		return errors.New("this challenge was not offered")
	case kind == "http-01":
		return tryHTTP(ctx, address, name, token, proof)
	case kind == "tls-alpn-01":
		return tryALPN(ctx, address, name, proof)
	}
	return fmt.Errorf("there is no challenge %q", kind)
}

func tryHTTP(ctx context.Context, address, name, token, proof string) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+name+"/.well-known/acme-challenge/"+token, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil || answer.StatusCode != http.StatusOK || string(bytes.TrimSpace(body)) != proof {
		return fmt.Errorf("http-01 was answered %d %q", answer.StatusCode, body)
	}
	return nil
}

// acmeIdentifier is the extension that holds the proof (RFC 8737).
var acmeIdentifier = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31}

func tryALPN(ctx context.Context, address, name, proof string) error {
	d := &tls.Dialer{Config: &tls.Config{ServerName: name, NextProtos: []string{"acme-tls/1"}, InsecureSkipVerify: true}}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	state := c.(*tls.Conn).ConnectionState()
	leaf := state.PeerCertificates[0]
	sum := sha256.Sum256([]byte(proof))
	want, err := asn1.Marshal(sum[:])
	if err != nil {
		return err
	}
	if state.NegotiatedProtocol != "acme-tls/1" || !slices.Equal(leaf.DNSNames, []string{name}) {
		return errors.New("tls-alpn-01 was answered with another protocol or name")
	}
	for _, e := range leaf.Extensions {
		if e.Id.Equal(acmeIdentifier) && e.Critical && bytes.Equal(e.Value, want) {
			return nil
		}
	}
	return errors.New("tls-alpn-01 was answered without the proof")
}
