package people

import "context"

// The bounds of passwords: characters at least, bytes at most.
const (
	MinPassword = 12
	MaxPassword = 1024
)

// SetPassword replaces the person's password and ends their other sessions. s
// needs fresh proof. The session goes on under a new token.
func (p *People) SetPassword(ctx context.Context, v Visit, s *Session, password string) (Entry, error) {
	return Entry{}, errUnbuilt
}
