package till

import (
	"context"
	"encoding/json"
	"net/url"
)

// APIKeys are the calls about keys.
type APIKeys struct{ c *Client }

// List returns your keys.
func (s *APIKeys) List(ctx context.Context) (*APIKeyList, error) {
	return read[APIKeyList](ctx, s.c, request{op: opListAPIKeys})
}

// Create makes a key, which is in the answer this once. It is never repeated:
// without an answer, list the keys and revoke the one that you have not seen.
func (s *APIKeys) Create(ctx context.Context, k CreateAPIKey) (*NewAPIKey, error) {
	return send[NewAPIKey](ctx, s.c, opCreateAPIKey, k)
}

// Rotate makes the successor of a key. It is never repeated, like Create.
func (s *APIKeys) Rotate(ctx context.Context, id string, r RotateAPIKey) (*NewAPIKey, error) {
	return send[NewAPIKey](ctx, s.c, opRotateAPIKey, r, id)
}

// Revoke ends a key and those that it made.
func (s *APIKeys) Revoke(ctx context.Context, id string) error {
	_, err := s.c.call(ctx, request{op: opRevokeAPIKey, params: []string{id}})
	return plain(err)
}

// RevokeAll ends a key that leaked, with all that descends from it. The answer is
// nil if the key was gone already.
func (s *APIKeys) RevokeAll(ctx context.Context, id string) (*RevokedAPIKey, error) {
	t, err := s.c.call(ctx, request{op: opRevokeAPIKey, params: []string{id}, query: url.Values{"cascade": {"true"}}})
	if err != nil || t.status != 200 {
		return nil, plain(err)
	}
	var out RevokedAPIKey
	return &out, json.Unmarshal(t.body, &out)
}
