package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"till"
	"till/secret"
)

// Demo is a client to try the service with.
type Demo struct {
	ClientID till.ID
	APIKey   string
}

const demoActor = "till dev"

// demoNames are the names of the demo clients.
var demoNames = map[till.Mode]string{till.Test: "Demo", till.Live: "Demo, live"}

// demoFile is what is stored of a demo client between two starts.
type demoFile struct {
	ClientID string `json:"client_id"`
	APIKey   string `json:"api_key"`
}

// openDemos finds the demo clients and their keys, or creates them.
func (s *Server) openDemos(ctx context.Context) (err error) {
	if s.c.DemoFile != "" {
		if s.demo, err = s.openDemo(ctx, till.Test, s.c.DemoFile); err != nil {
			return err
		}
	}
	if s.c.LiveDemoFile == "" {
		return s.openDemoPeople(ctx)
	}
	if s.liveDemo, err = s.openDemo(ctx, till.Live, s.c.LiveDemoFile); err != nil {
		return err
	}
	for _, m := range till.Methods() {
		if err := s.accounts.EnableMethod(ctx, s.liveDemo.ClientID, m.Code, true, demoActor); err != nil {
			return fmt.Errorf("make the live demo client: %w", err)
		}
	}
	return s.openDemoPeople(ctx)
}

// openDemoPeople makes people to try the console with, who get in by a link of
// this process. Where other machines reach the console there are none.
func (s *Server) openDemoPeople(ctx context.Context) error {
	if s.demo == nil || s.people == nil || !s.c.LoopbackOnly {
		return nil
	}
	clients := []till.ID{s.demo.ClientID}
	if s.liveDemo != nil {
		clients = append(clients, s.liveDemo.ClientID)
	}
	token, err := s.people.OpenDemo(ctx, clients...)
	if err != nil {
		return fmt.Errorf("make the demo's people: %w", err)
	}
	s.demoToken = token
	return nil
}

// DemoConsole returns the link that signs in as the first of the demo's people,
// "" if there are none.
func (s *Server) DemoConsole() string {
	if s.demoToken == "" {
		return ""
	}
	return s.ConsoleURL() + "enter/" + s.demoToken
}

// openDemo returns a demo client. A key that was lost or revoked is followed by
// a new one of the same client.
func (s *Server) openDemo(ctx context.Context, mode till.Mode, file string) (*Demo, error) {
	d, err := s.savedDemo(ctx, mode, file)
	if err != nil || d != nil {
		return d, err
	}
	if d, err = s.newDemo(ctx, mode); err != nil {
		return nil, fmt.Errorf("make the demo client: %w", err)
	}
	b, err := json.Marshal(demoFile{d.ClientID.String(), d.APIKey})
	if err != nil {
		return nil, err
	}
	if err := secret.WritePrivate(file, append(b, '\n')); err != nil {
		return nil, fmt.Errorf("keep the demo key: %w", err)
	}
	return d, nil
}

// savedDemo returns the demo client of an earlier start if its key is still valid in this
// database.
func (s *Server) savedDemo(ctx context.Context, mode till.Mode, file string) (*Demo, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the demo key: %w", err)
	}
	var f demoFile
	if json.Unmarshal(b, &f) != nil {
		return nil, nil // a new key is created
	}
	session, err := s.accounts.AuthenticateNow(ctx, f.APIKey)
	switch {
	case till.ErrorCode(err) == till.CodeInvalidKey:
		return nil, nil
	case err != nil:
		return nil, err
	case session.Client.Mode != mode || session.Client.Name != demoNames[mode]:
		return nil, nil // another client's key is never used
	}
	return &Demo{session.Client.ID, f.APIKey}, nil
}

func (s *Server) newDemo(ctx context.Context, mode till.Mode) (*Demo, error) {
	known, err := s.findDemo(ctx, mode)
	if err != nil {
		return nil, err
	}
	if known != nil {
		text, _, err := s.accounts.CreateKey(ctx, known.ID, "demo", nil, 0, demoActor)
		return &Demo{known.ID, text}, err
	}
	c, text, err := s.accounts.CreateClient(ctx, demoNames[mode], mode, demoActor)
	if err != nil {
		return nil, err
	}
	return &Demo{c.ID, text}, nil
}

// findDemo searches all clients for the demo client, page by page; nil if there is none.
func (s *Server) findDemo(ctx context.Context, mode till.Mode) (*till.Client, error) {
	const page = 500
	for after := (till.ID{}); ; {
		clients, err := s.accounts.Clients(ctx, after, page)
		if err != nil || len(clients) == 0 {
			return nil, err
		}
		for _, c := range clients {
			if c.Name == demoNames[mode] && c.Mode == mode {
				return c, nil
			}
			after = c.ID
		}
	}
}
