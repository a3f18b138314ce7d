package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"till"
)

// Demo is the test client to try the service with.
type Demo struct {
	ClientID till.ID
	APIKey   string
}

const (
	demoName  = "Demo"
	demoActor = "till dev"
)

// demoFile is what is kept of the demo client between two starts.
type demoFile struct {
	ClientID string `json:"client_id"`
	APIKey   string `json:"api_key"`
}

// makeDemo finds the demo client with its key, or makes what is missing. A
// key that was lost or revoked is followed by a new one of the same client.
func (s *Server) makeDemo(ctx context.Context) error {
	if s.c.DemoFile == "" {
		return nil
	}
	d, err := s.keptDemo(ctx)
	if err != nil || d != nil {
		s.demo = d
		return err
	}
	if d, err = s.newDemo(ctx); err != nil {
		return fmt.Errorf("make the demo client: %w", err)
	}
	b, err := json.Marshal(demoFile{d.ClientID.String(), d.APIKey})
	if err != nil {
		return err
	}
	if err := writePrivate(s.c.DemoFile, append(b, '\n')); err != nil {
		return fmt.Errorf("keep the demo key: %w", err)
	}
	s.demo = d
	return nil
}

// keptDemo returns the demo client of an earlier start if its key still opens
// this database.
func (s *Server) keptDemo(ctx context.Context) (*Demo, error) {
	b, err := os.ReadFile(s.c.DemoFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the demo key: %w", err)
	}
	var f demoFile
	if json.Unmarshal(b, &f) != nil {
		return nil, nil // a new one is made
	}
	session, err := s.accounts.AuthenticateNow(ctx, f.APIKey)
	switch {
	case till.ErrorCode(err) == till.CodeInvalidKey:
		return nil, nil
	case err != nil:
		return nil, err
	case session.Client.Mode != till.Test:
		return nil, nil // a live key never is a demo
	}
	return &Demo{session.Client.ID, f.APIKey}, nil
}

func (s *Server) newDemo(ctx context.Context) (*Demo, error) {
	known, err := s.findDemo(ctx)
	if err != nil {
		return nil, err
	}
	if known != nil {
		text, _, err := s.accounts.CreateKey(ctx, known.ID, "demo", nil, 0, demoActor)
		return &Demo{known.ID, text}, err
	}
	c, text, err := s.accounts.CreateClient(ctx, demoName, till.Test, demoActor)
	if err != nil {
		return nil, err
	}
	return &Demo{c.ID, text}, nil
}

// findDemo looks for the demo client among all, a page at a time; nil if
// there is none.
func (s *Server) findDemo(ctx context.Context) (*till.Client, error) {
	const page = 500
	for after := (till.ID{}); ; {
		clients, err := s.accounts.Clients(ctx, after, page)
		if err != nil || len(clients) == 0 {
			return nil, err
		}
		for _, c := range clients {
			if c.Name == demoName && c.Mode == till.Test {
				return c, nil
			}
			after = c.ID
		}
	}
}
