package books

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"time"

	"till"
	"till/internal/loop"
	"till/store"
	"till/store/auditlog"
)

// AuditHead is the newest link of a client's audit chain at some time. Kept
// outside of the database, it shows later whether the log up to there is
// unchanged.
type AuditHead struct {
	Client   till.ID
	Sequence int64
	Hash     [32]byte
}

// String returns the head as one word, as logs and commands show it.
func (h AuditHead) String() string {
	return fmt.Sprintf("%s:%d:%x", h.Client, h.Sequence, h.Hash)
}

// headText matches a head inside any text.
var headText = regexp.MustCompile(`\b([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([1-9][0-9]{0,17}):([0-9a-f]{64})\b`)

// FindHeads returns the heads in a text, for example a log.
func FindHeads(text string) (out []AuditHead) {
	for _, m := range headText.FindAllStringSubmatch(text, -1) {
		var h AuditHead
		var err error
		if h.Client, err = till.ParseID(m[1]); err != nil {
			continue
		}
		h.Sequence, _ = strconv.ParseInt(m[2], 10, 64) // the expression lets nothing else pass
		hex.Decode(h.Hash[:], []byte(m[3]))
		out = append(out, h)
	}
	return out
}

// EachHead calls f with the head of each audit chain, the installation's first, until f
// returns false.
func EachHead(ctx context.Context, s *store.Store, f func(h AuditHead) (more bool)) error {
	var heads []AuditHead
	page := func(clients []till.ID) error {
		err := s.View(ctx, func(tx *store.Tx) error {
			heads = heads[:0]
			for _, id := range clients {
				link, err := auditlog.LastLink(ctx, tx, id)
				if err != nil {
					return err
				}
				if link.Sequence > 0 {
					heads = append(heads, AuditHead{id, link.Sequence, link.Hash})
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, h := range heads {
			if !f(h) {
				return errStop
			}
		}
		return nil
	}
	err := page([]till.ID{till.House})
	if err == nil {
		err = s.EachPageOfClients(ctx, page)
	}
	if errors.Is(err, errStop) {
		err = nil
	}
	return err
}

var errStop = errors.New("enough")

// When heads are logged, and how many at most: each takes some 100 bytes of
// memory.
const (
	firstHeadsAfter = time.Minute
	headInterval    = time.Hour
	maxLoggedHeads  = 10_000
)

// RunHeads logs the heads of the audit chains until ctx ends: once an hour
// those that have changed. The log is kept outside of the database, so it
// shows that a chain was rewritten even if the database is consistent. Each
// time, the heads that this process logged before are checked.
func RunHeads(ctx context.Context, s *store.Store, log *slog.Logger) {
	select {
	case <-time.After(firstHeadsAfter):
	case <-ctx.Done():
		return
	}
	told := map[till.ID]AuditHead{}
	loop.RunLogged(ctx, log, "log the audit heads", headInterval, func(ctx context.Context) error {
		return logHeads(ctx, s, log, told)
	})
}

// logHeads logs the heads that have changed.
func logHeads(ctx context.Context, s *store.Store, log *slog.Logger, told map[till.ID]AuditHead) error {
	err := checkLoggedHeads(ctx, s, log, told)
	if err != nil {
		return err
	}
	return EachHead(ctx, s, func(h AuditHead) bool {
		before, known := told[h.Client]
		switch {
		case known && before == h:
			return true
		case !known && len(told) >= maxLoggedHeads:
			log.Warn("there are more audit chains than the log is told of; keep what 'till audit head' prints", "told", maxLoggedHeads)
			return false
		}
		told[h.Client] = h
		log.Info("audit head", "head", h.String())
		return true
	})
}

// checkLoggedHeads checks that logged heads are still part of their chains.
func checkLoggedHeads(ctx context.Context, s *store.Store, log *slog.Logger, told map[till.ID]AuditHead) error {
	for client, h := range told {
		var at []auditlog.ChainLink
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			at, err = auditlog.ChainLinks(ctx, tx, client, h.Sequence-1, 1)
			return err
		})
		if err != nil {
			return err
		}
		if len(at) == 0 || at[0].Sequence != h.Sequence || at[0].Hash != h.Hash {
			log.Error("an audit chain is not the one whose head was told: it was rewritten, or an older database was put back; run 'till verify --audit-heads'", "head", h.String())
			delete(told, client)
		}
	}
	return nil
}

var errHeadsNeedKey = errors.New("remembered heads of audit chains cannot be compared without the installation's secret")

// byClient groups heads by client, in the order of the logs, each once.
func byClient(heads []AuditHead) map[till.ID][]AuditHead {
	out := map[till.ID][]AuditHead{}
	for _, h := range heads {
		out[h.Client] = append(out[h.Client], h)
	}
	for client, of := range out {
		slices.SortFunc(of, func(a, b AuditHead) int {
			return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), bytes.Compare(a.Hash[:], b.Hash[:]))
		})
		out[client] = slices.Compact(of)
	}
	return out
}

// verifyHeads compares the kept heads up to a row with the chain at that row,
// and returns the later ones.
func (v *verifier) verifyHeads(c *chains, heads []AuditHead, row int64) []AuditHead {
	for len(heads) > 0 && heads[0].Sequence <= row {
		h := heads[0]
		heads = heads[1:]
		if h.Sequence == row && row <= c.end && c.keyed.Sequence == row && c.keyed.Hash == h.Hash {
			v.Heads++
			continue
		}
		why := "the log was rewritten, or an older database was put back"
		if c.restored > 0 && c.restored <= h.Sequence {
			why = fmt.Sprintf("row %d says that an older database was put back, by which a head from the lost time is lost; if this one is from another time, the log was rewritten", c.restored)
		}
		if h.Sequence > c.end {
			v.problem("I14", till.ID{}, "the audit chain ends at %d, and the head that was kept is of %d: %s", c.end, h.Sequence, why)
		} else {
			v.problem("I14", till.ID{}, "the audit chain has another link at %d than the head that was kept: %s", h.Sequence, why)
		}
	}
	return heads
}

// reportMissingHeads adds a problem for each kept head whose client does not
// exist.
func (v *verifier) reportMissingHeads() {
	for client := range v.heads {
		v.client = client
		v.problem("I14", till.ID{}, "the client whose head was kept is not here: it was removed, or a database from before it was put back")
	}
	v.client = till.ID{}
}
