package store

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// shortConn takes so many bytes and then fails.
type shortConn struct {
	net.Conn
	room int
}

func (c *shortConn) Write(b []byte) (int, error) {
	n := min(c.room, len(b))
	c.room -= n
	if n < len(b) {
		return n, errors.New("the line is cut")
	}
	return n, nil
}

// A COMMIT that went out without the Sync behind it may have been done: only if
// not a byte went out is it plain that it was not.
func TestWhatWasSentInPartMayHaveReachedTheServer(t *testing.T) {
	all := []owed{{text: "UPDATE x SET y = $1", args: []any{int64(1)}}, {text: "COMMIT"}}
	types := [][]uint32{{pgtype.Int8OID}, nil}
	for _, c := range []struct {
		room    int
		reached bool
		fails   bool
	}{{0, false, true}, {1, true, true}, {100, true, true}, {1 << 20, true, false}} {
		w := newWire(&shortConn{room: c.room}, nil)
		reached, err := w.send(all, types)
		if reached != c.reached || (err != nil) != c.fails {
			t.Errorf("with room for %d bytes: reached %t, %v; want %t", c.room, reached, err, c.reached)
		}
	}
	// What cannot be said is not begun.
	for _, args := range [][]any{nil, {"a text"}, {int64(1), int64(2)}, {3.5}} {
		w := newWire(&shortConn{room: 1 << 20}, nil)
		all[0].args = args
		if reached, err := w.send(all, types); reached || err == nil {
			t.Errorf("%v for a number: reached %t, %v", args, reached, err)
		}
	}
}

// The answers that a server may give to two writes and a COMMIT.
func TestAnAnswerTellsHowFarTheServerCame(t *testing.T) {
	done := func(tag string) pgproto3.BackendMessage {
		return &pgproto3.CommandComplete{CommandTag: []byte(tag)}
	}
	refused := &pgproto3.ErrorResponse{Severity: "ERROR", Code: "23505"}
	fatal := &pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P01"}
	ready := &pgproto3.ReadyForQuery{TxStatus: 'I'}
	bound := &pgproto3.BindComplete{}
	alone := &pgproto3.NoticeResponse{Severity: "WARNING", File: "syncrep.c"}
	for name, c := range map[string]struct {
		says    []pgproto3.BackendMessage
		done    int
		last    string
		refused string
		alone   bool
		lost    bool
	}{
		"all is well":              {[]pgproto3.BackendMessage{bound, done("UPDATE 2"), bound, done("SELECT 1"), bound, done("COMMIT"), ready}, 3, "COMMIT", "", false, false},
		"a write is refused":       {[]pgproto3.BackendMessage{bound, done("UPDATE 2"), refused, ready}, 1, "UPDATE 2", "23505", false, false},
		"the commit is refused":    {[]pgproto3.BackendMessage{done("UPDATE 2"), done("SELECT 1"), bound, refused, ready}, 2, "SELECT 1", "23505", false, false},
		"it had failed before":     {[]pgproto3.BackendMessage{done("UPDATE 2"), done("SELECT 1"), done("ROLLBACK"), ready}, 3, "ROLLBACK", "", false, false},
		"the standby is away":      {[]pgproto3.BackendMessage{done("UPDATE 2"), done("SELECT 1"), alone, done("COMMIT"), ready}, 3, "COMMIT", "", true, false},
		"the server ends":          {[]pgproto3.BackendMessage{done("UPDATE 2"), fatal}, 1, "UPDATE 2", "57P01", false, true},
		"the line is cut":          {[]pgproto3.BackendMessage{done("UPDATE 2"), done("SELECT 1")}, 2, "SELECT 1", "", false, true},
		"the line is cut at once":  {nil, 0, "", "", false, true},
		"cut behind the commit":    {[]pgproto3.BackendMessage{done("UPDATE 2"), done("SELECT 1"), done("COMMIT")}, 3, "COMMIT", "", false, true},
		"the end comes before all": {[]pgproto3.BackendMessage{fatal}, 0, "", "57P01", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := net.Pipe()
			client.SetDeadline(time.Now().Add(10 * time.Second))
			go func() {
				defer server.Close()
				for _, m := range c.says {
					b, err := m.Encode(nil)
					if err != nil {
						t.Error(err)
					}
					server.Write(b)
				}
			}()
			a, err := newWire(client, pgproto3.NewFrontend(client, client)).receive()
			code := ""
			if a.refused != nil {
				code = a.refused.Code
			}
			if a.done != c.done || a.last != c.last || code != c.refused || a.alone != c.alone || (err != nil) != c.lost {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}
