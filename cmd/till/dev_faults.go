package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"till/internal/dev/faulty"
	"till/internal/system"
	"till/server"
)

// devFront is the proxy with faults before a till dev; nil if there is none. Programs reach
// the service through it; the console and the commands beside till dev go past it.
type devFront struct {
	listen string
	flags  proxyFlags
	at     string // its address, without /v1
	stop   context.CancelFunc
	ended  chan error
}

// newDevFront reads --faults, and gives the service's own address to the proxy.
func newDevFront(text string, c *server.Config) (*devFront, error) {
	if text == "" {
		return nil, nil
	}
	f := &devFront{listen: c.Listen}
	if err := f.flags.parse(text); err != nil {
		return nil, fmt.Errorf("--faults: %w", err)
	}
	if _, err := f.flags.rules(); err != nil {
		return nil, fmt.Errorf("--faults: %s", strings.TrimPrefix(err.Error(), "--"))
	}
	if c.LoopbackOnly && !system.IsLoopback(c.Listen) {
		return nil, errors.New("--faults needs a --listen that only this machine reaches, or --insecure-listen")
	}
	c.Listen = "127.0.0.1:0"
	return f, nil
}

// parse reads words such as lose-answers=20%.
func (p *proxyFlags) parse(text string) (err error) {
	p.seed = 1
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "lose-answers":
			p.loseAnswers = value
		case "lose-requests":
			p.loseRequests = value
		case "cut":
			p.cut = value
		case "slow":
			p.slow = append(p.slow, value)
		case "status":
			p.status = append(p.status, value)
		case "seed":
			if p.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
				return fmt.Errorf("seed: %q is no number", value)
			}
			continue
		default:
			return fmt.Errorf("%q is no fault: lose-answers, lose-requests, cut, slow, status, seed", name)
		}
		if value == "" {
			return fmt.Errorf("%s needs a share: as lose-answers=20%%", name)
		}
	}
	return nil
}

// begin serves the proxy to a service.
func (f *devFront) begin(cmd *cobra.Command, baseURL string, asJSON bool) error {
	if f == nil {
		return nil
	}
	rules, err := f.flags.rules()
	if err != nil {
		return err
	}
	proxy, err := faulty.New(strings.TrimSuffix(baseURL, "/v1"), f.flags.seed, rules...)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	f.at = "http://" + l.Addr().String()
	ctx, stop := context.WithCancel(cmd.Context())
	f.stop, f.ended = stop, make(chan error, 1)
	go func() {
		defer proxy.Close()
		f.ended <- serveProxy(ctx, cmd.ErrOrStderr(), l, proxy, asJSON)
	}()
	return nil
}

// address returns where programs reach the service.
func (f *devFront) address(baseURL string) string {
	if f == nil {
		return baseURL
	}
	return f.at + "/v1"
}

// end stops the proxy.
func (f *devFront) end() error {
	if f == nil || f.stop == nil {
		return nil
	}
	f.stop()
	return <-f.ended
}
