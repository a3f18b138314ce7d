package till

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/url"
)

// Transactions are the calls about the statement.
type Transactions struct{ c *Client }

// TransactionFilter narrows a list of transactions; what is empty does not.
type TransactionFilter struct {
	Type, Currency      string
	PaymentID, PayoutID string
	Reference           string
	From, To            Timestamp // both inclusive
	OldestFirst         bool
	Limit, Offset       int // of Page
}

func (f TransactionFilter) query() url.Values {
	q := url.Values{}
	set(q, "type", f.Type)
	set(q, "currency", f.Currency)
	set(q, "payment_id", f.PaymentID)
	set(q, "payout_id", f.PayoutID)
	set(q, "reference", f.Reference)
	set(q, "from_date", string(f.From))
	set(q, "to_date", string(f.To))
	paging(q, f.OldestFirst, f.Limit, f.Offset)
	return q
}

// Page lists transactions, newest first, with their total.
func (s *Transactions) Page(ctx context.Context, f TransactionFilter) (*TransactionPage, error) {
	return read[TransactionPage](ctx, s.c, request{op: opListTransactions, query: f.query()})
}

// All goes through all transactions that match.
func (s *Transactions) All(ctx context.Context, f TransactionFilter) iter.Seq2[*Transaction, error] {
	f.Limit, f.Offset = 0, 0
	return all(ctx, f.query(), func(ctx context.Context, q url.Values) (page[Transaction], error) {
		p, err := read[TransactionPage](ctx, s.c, request{op: opListTransactions, query: q})
		if err != nil {
			return page[Transaction]{}, err
		}
		return page[Transaction]{items: p.Items}, nil
	}, func(t *Transaction) string { return t.ID }, func(t *Transaction) Timestamp { return t.CreatedAt })
}

// maxLine bounds a line of an export.
const maxLine = 1 << 20

// errStopped ends an export that nobody reads on.
var errStopped = errors.New("till: stopped")

// Export streams the whole statement that the filter leaves, as of now, oldest
// first. Its last value is an error if the stream was cut: what was given is then
// not the whole.
func (s *Transactions) Export(ctx context.Context, f TransactionFilter) iter.Seq2[*Transaction, error] {
	return func(yield func(*Transaction, error) bool) {
		f.OldestFirst, f.Limit, f.Offset = false, 0, 0
		given := false
		r := request{op: opListTransactions, query: f.query(), accept: "application/jsonl", stream: func(body io.Reader) error {
			lines := bufio.NewScanner(body)
			lines.Buffer(nil, maxLine)
			for lines.Scan() {
				if len(bytes.TrimSpace(lines.Bytes())) == 0 {
					continue
				}
				var t Transaction
				if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
					return err
				}
				given = true
				if !yield(&t, nil) {
					return errStopped
				}
			}
			return lines.Err()
		}}
		key, err := s.c.apiKey(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for n := 1; ; n++ { // a repeat would give lines twice, so only before the first
			t := s.c.try(ctx, r, key, 0)
			if errors.Is(t.cause, errStopped) || judge(r.op, t, false) == verdictDone {
				return
			}
			wait := delay(n-1, t.retryAfter, s.c.random())
			if given || n >= s.c.tries || !t.passing() || wait > s.c.deadline || s.c.sleep(ctx, wait) != nil {
				t.cause = ctx.Err() // any other may name addresses, or show a part of a line
				yield(nil, failure(judge(r.op, t, false), t, "", n))
				return
			}
		}
	}
}
