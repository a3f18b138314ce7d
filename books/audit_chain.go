package books

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"till"
	"till/internal/loop"
	"till/internal/seal"
	"till/store"
	"till/store/auditlog"
)

// Limits of ExtendChains: rows in a commit, clients in a round, and the interval
// of RunChains.
const (
	chainBatch    = 500
	chainClients  = 1_000
	chainInterval = time.Second

	distributedChainInterval = 5 * time.Second // a round asks each part of the table
)

// chainLabel separates this key from other keys that are derived from the
// installation's secret.
const chainLabel = "till audit chain v1"

// ChainKey returns the key of an installation's audit chains.
func ChainKey(secret []byte) (auditlog.ChainKey, error) {
	key, err := seal.Key(secret, chainLabel)
	if err != nil {
		return nil, fmt.Errorf("audit chains: %w", err)
	}
	return key, nil
}

// ExtendChains extends the audit chains in small background commits and
// returns how many rows were chained. Rows that come meanwhile wait for the
// next call. A chain stops at a gap in its log, and Verify reports the gap.
func ExtendChains(ctx context.Context, s *store.Store, key auditlog.ChainKey) (int, error) {
	return extendChains(ctx, s, key, func([]*store.AuditRow) {})
}

// extendChains passes the rows of each commit to chained.
func extendChains(ctx context.Context, s *store.Store, key auditlog.ChainKey, chained func([]*store.AuditRow)) (int, error) {
	if len(key) == 0 {
		return 0, errors.New("audit chains are sealed with the installation's key")
	}
	total, more := 0, true
	for more {
		var clients []till.ID
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			clients, err = auditlog.ClientsToChain(ctx, tx, chainClients)
			return err
		})
		if err != nil {
			return total, err
		}
		before := total
		for _, id := range clients {
			for n := chainBatch; n == chainBatch; total += n {
				if err := ctx.Err(); err != nil {
					return total, err
				}
				rows, err := extendChain(ctx, s, key, id)
				if err != nil {
					return total, fmt.Errorf("seal the audit log of client %s: %w", id, err)
				}
				n = len(rows)
				chained(rows)
			}
		}
		more = len(clients) == chainClients && total > before
	}
	return total, nil
}

// extendChain adds one link for up to chainBatch rows of a client's log, and
// returns the rows. Two instances at once may make two links that continue the
// same one; both are right.
func extendChain(ctx context.Context, s *store.Store, key auditlog.ChainKey, client till.ID) (chained []*store.AuditRow, err error) {
	err = s.UpdateBackground(ctx, func(tx *store.Tx) error {
		chained = nil
		link, err := auditlog.LastLink(ctx, tx, client)
		if err == nil && link.Sequence == 0 {
			link, err = continueUnkeyedChain(ctx, tx, key, client)
		}
		if err != nil {
			return err
		}
		rows, err := auditlog.Read(ctx, tx, client, link.Sequence, chainBatch)
		if err != nil {
			return err
		}
		link.Covers = 0
		for _, a := range rows {
			if a.Sequence != link.Sequence+1 {
				break
			}
			link = key.NextLink(link, a)
			chained = append(chained, a)
		}
		if len(chained) == 0 {
			return nil
		}
		return auditlog.InsertLink(ctx, tx, client, link)
	})
	if err != nil {
		return nil, err
	}
	return chained, nil
}

// continueUnkeyedChain makes the first keyed link of a chain whose older links
// have no key, so that nobody can replace those from then on. It returns the
// newest link, or the zero link where a chain begins.
func continueUnkeyedChain(ctx context.Context, tx *store.Tx, key auditlog.ChainKey, client till.ID) (auditlog.ChainLink, error) {
	plain, err := auditlog.LastUnkeyedLink(ctx, tx, client)
	if err != nil || plain.Sequence == 0 {
		return auditlog.ChainLink{}, err
	}
	// Two instances, or an older release that still adds links without a key,
	// could see different ends. The lock makes one of them the first.
	if _, err := tx.LockLogs(ctx, []till.ID{client}); err != nil {
		return auditlog.ChainLink{}, err
	}
	if link, err := auditlog.LastLink(ctx, tx, client); err != nil || link.Sequence > 0 {
		return link, err
	}
	link := key.LinkUnkeyed(client, plain)
	return link, auditlog.InsertLink(ctx, tx, client, link)
}

// RunChains extends the chains until ctx ends, about once a second, on Citus every
// five. It passes each row that it has chained to chained, also those of commands
// and other instances. A crash can lose a row there, and two instances can both
// have it.
func RunChains(ctx context.Context, s *store.Store, key auditlog.ChainKey, log *slog.Logger, chained func([]*store.AuditRow)) {
	every := chainInterval
	if s.Distributed() {
		every = distributedChainInterval
	}
	loop.RunLogged(ctx, log, "seal the audit logs", every, func(ctx context.Context) error {
		_, err := extendChains(ctx, s, key, chained)
		return err
	})
}
