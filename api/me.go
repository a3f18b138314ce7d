package api

import (
	"net/http"

	"till"
)

// getMe is GET /me: whose key this is, and what it may do. It reads nothing: a key that may
// do little can ask, too.
func (c keyHandlers) getMe() error {
	client, key := c.session.Client, c.session.Key
	return c.answer(http.StatusOK, me{client.ID, client.Name, client.Mode, key.ID, key.Scopes, c.s.BaseURL, Version})
}

type me struct {
	ClientID   till.ID      `json:"client_id"`
	Name       string       `json:"name"`
	Mode       till.Mode    `json:"mode"`
	KeyID      string       `json:"key_id"`
	Scopes     []till.Scope `json:"scopes"`
	BaseURL    string       `json:"base_url"`
	APIVersion string       `json:"api_version"`
}
