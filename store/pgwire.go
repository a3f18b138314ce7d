package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pgWire speaks to the server about writes whose rows nobody wants to see, in
// its own messages: some statements up to a Sync. The server answers each
// statement, or the first one that fails, and then that it is ready again. The
// driver would ask it to describe every statement, and look up how to encode
// every argument.
type pgWire struct {
	conn     net.Conn
	answers  *pgproto3.Frontend
	prepared map[string]string // the names of statements, by their texts
	buf      []byte            // of what was sent last, to be used again
}

// maxBuffer is how much room is kept for the next message.
const maxBuffer = 1 << 20

func newWire(conn net.Conn, answers *pgproto3.Frontend) *pgWire {
	return &pgWire{conn: conn, answers: answers, prepared: make(map[string]string)}
}

// types are the types of a statement's arguments, by its text, as a server told
// them. The texts are the program's own, so it is bounded.
var types sync.Map

// typesOf returns the types of the arguments of statements.
func (ses *pgSession) typesOf(ctx context.Context, all []owed) ([][]uint32, error) {
	out := make([][]uint32, len(all))
	for i, o := range all {
		t, ok := types.Load(o.text)
		if !ok {
			d, err := ses.conn.Prepare(ctx, "", o.text)
			if err != nil {
				return nil, ses.lost(err)
			}
			t = d.ParamOIDs
			types.Store(o.text, t)
		}
		out[i] = t.([]uint32)
	}
	return out, nil
}

// send sends statements and a Sync. If it fails, the Sync has not gone out and
// the connection is of no use any more, but some of the statements may have
// reached the server; a COMMIT among them is not undone.
func (w *pgWire) send(all []owed, types [][]uint32) (reached bool, err error) {
	b := w.buf[:0]
	// A statement that fails makes the server pass over the rest, but not over
	// what it was told to prepare before.
	for i, o := range all {
		if w.prepared[o.text] == "" {
			w.prepared[o.text] = "till" + strconv.Itoa(len(w.prepared)+1)
			if b, err = (&pgproto3.Parse{Name: w.prepared[o.text], Query: o.text, ParameterOIDs: types[i]}).Encode(b); err != nil {
				return false, err
			}
		}
	}
	for i, o := range all {
		if b, err = appendBind(b, w.prepared[o.text], types[i], o.args); err != nil {
			return false, fmt.Errorf("%w: %.60s", err, o.text)
		}
		b = append(b, messageExecute...)
	}
	b = append(b, messageSync...)
	if w.buf = b; cap(b) > maxBuffer {
		w.buf = nil
	}
	n, err := w.conn.Write(b)
	return n > 0, err
}

// answered is what the server said to some statements.
type answered struct {
	done    int             // how many it has done
	last    string          // what it said about the last of them
	refused *pgconn.PgError // what it said about the next
	alone   bool            // the wait for a synchronous standby was cancelled
}

// receive reads the answer to what was sent. After an error nobody knows what the
// server has done beyond that, and the connection is of no use any more.
func (w *pgWire) receive() (a answered, err error) {
	for {
		m, err := w.answers.Receive()
		if err != nil {
			return a, err
		}
		switch m := m.(type) {
		case *pgproto3.CommandComplete:
			a.done++
			a.last = string(m.CommandTag)
		case *pgproto3.NoticeResponse:
			a.alone = a.alone || fromStandby(m.File)
		case *pgproto3.ErrorResponse:
			a.refused = pgconn.ErrorResponseToPgError(m) // if it is the end, the server hangs up
		case *pgproto3.ReadyForQuery:
			return a, nil
		}
	}
}

// fromStandby reports whether a notice, by the server's file that it comes from,
// says that the wait for a synchronous standby was cancelled.
func fromStandby(file string) bool { return strings.Contains(file, "syncrep") }

var (
	messageExecute, _ = (&pgproto3.Execute{}).Encode(nil)
	messageSync, _    = (&pgproto3.Sync{}).Encode(nil)
)

// appendBind appends the message that binds the arguments of a statement, all
// in their binary form.
func appendBind(b []byte, name string, types []uint32, args []any) ([]byte, error) {
	if len(types) != len(args) {
		return nil, fmt.Errorf("%d arguments instead of %d", len(args), len(types))
	}
	start := len(b) + 1
	b = append(b, 'B', 0, 0, 0, 0, 0) // its length comes last; the portal has no name
	b = append(append(b, name...), 0)
	b = binary.BigEndian.AppendUint16(b, 1) // one word about all formats:
	b = binary.BigEndian.AppendUint16(b, 1) // binary
	b = binary.BigEndian.AppendUint16(b, uint16(len(args)))
	ok := false
	for i, a := range args {
		if b, ok = appendValue(b, types[i], a); !ok {
			return nil, fmt.Errorf("argument %d is a %T", i+1, a)
		}
	}
	b = binary.BigEndian.AppendUint16(b, 0) // nobody looks at what is returned
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b, nil
}
