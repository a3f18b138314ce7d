package store

import (
	"context"

	"till"
	"till/internal/db"
	"till/store/schema"
)

// Fetched returns how many blocks of an index were asked for so far, on PostgreSQL: by this
// transaction, and by those before it on its connection that the server has not counted
// yet. So a difference within one transaction says what a read costs.
func Fetched(ctx context.Context, tx *Tx, index string) (n int64, err error) {
	_, err = tx.db.QueryRow(ctx, &db.SQL{SQLite: `SELECT pg_stat_get_xact_blocks_fetched(to_regclass('` + index + `'))`}, nil, &n)
	return n, err
}

// RowsRead returns how much was read so far, also for a difference: entries of the indexes of a
// table on PostgreSQL, and steps of SQLite's machine, a handful for each row, on a file.
func RowsRead(ctx context.Context, tx *Tx, table string) (n int64, err error) {
	if c, ok := tx.db.Conn().(interface{ Steps() int64 }); ok {
		return c.Steps(), nil
	}
	_, err = tx.db.QueryRow(ctx, &db.SQL{SQLite: `SELECT CAST(sum(pg_stat_get_xact_tuples_returned(indexrelid)) AS BIGINT) FROM pg_index WHERE indrelid = to_regclass('` + table + `')`}, nil, &n)
	return n, err
}

// ListTexts calls f with every text that lists are made of, for each combination of
// filters, directions and pairs, and what it is. byEnd is as in newList.
func ListTexts(byEnd bool, f func(name, text string)) {
	either := []bool{false, true}
	for _, table := range []string{countPayments, countPayouts} {
		for _, method := range []string{"", "m"} {
			for _, status := range []till.Status{"", till.Pending, till.Success} {
				for _, reference := range either {
					for _, receipt := range either {
						for _, key := range either {
							filter := PaymentFilter{Method: method, Status: status}
							name := table + of("method", method != "") + of(string(status), status != "")
							if reference {
								filter.Reference = "r"
							}
							if receipt {
								filter.ProviderReference = "r"
							}
							if key {
								filter.Key = &till.ID{}
							}
							listTexts(filter.list(byEnd, table, till.ID{}, Page{}), name+of("reference", reference)+of("receipt", receipt)+of("key", key), f)
						}
					}
				}
			}
		}
	}
	listRefundTexts(byEnd, f)
	for _, typ := range []string{"", "t"} {
		for _, currency := range []string{"", "c"} {
			for _, reference := range either {
				for _, payment := range either {
					for _, payout := range either {
						filter := TransactionFilter{Type: typ, Currency: currency}
						if reference {
							filter.Reference = "r"
						}
						if payment {
							filter.PaymentID[0] = 1
						}
						if payout {
							filter.PayoutID[0] = 1
						}
						listTexts(filter.list(till.ID{}, Page{}), countTransactions+of("type", typ != "")+of("currency", currency != "")+
							of("reference", reference)+of("payment", payment)+of("payout", payout), f)
					}
				}
			}
		}
	}
}

// listRefundTexts is ListTexts for refunds, whose lists are those of payouts but for the payment.
func listRefundTexts(byEnd bool, f func(name, text string)) {
	for _, method := range []string{"", "m"} {
		for _, status := range []till.Status{"", till.Pending, till.Success} {
			for _, payment := range []bool{false, true} {
				filter := PaymentFilter{Method: method, Status: status}
				if payment {
					filter.PaymentID[0] = 1
				}
				listTexts(filter.list(byEnd, countRefunds, till.ID{}, Page{}), countRefunds+of("method", method != "")+of(string(status), status != "")+of("payment", payment), f)
			}
		}
	}
}

func of(name string, on bool) string {
	if on {
		return " " + name
	}
	return ""
}

// listTexts calls f with the texts of one filter.
func listTexts(l *list, name string, f func(name, text string)) {
	var pairs []filterPair
	if l.ofPairs() {
		pairs = []filterPair{{a: "a", b: string(till.Success)}, {a: "a", b: string(till.Pending)}}
	}
	f("count "+name, countSQL(l, pairs, till.ID{}, till.ID{}).text.String())
	for _, order := range []string{"ASC", "DESC"} {
		f("page "+name+" "+order, pageSQL(l, pairs, idRange{order: order}).text.String())
		if !l.indexed {
			f("page "+name+" "+order+" backwards", pageSQL(l, pairs, idRange{order: order, backwards: true}).text.String())
		}
	}
}

// SetAway makes reads over all clients ask each node by itself, as if another one were away.
func SetAway(s *Store) { s.nodes.away.set(-1, true) }

// DueStepsCommand is what a part of steps is asked.
var DueStepsCommand = dueStepsCommand

// NextCommands is what Distribute has to run next on 4 shards.
func NextCommands(ctx context.Context, s *Store) ([]string, error) {
	return schema.NextCommands(ctx, s.db, 4)
}

// SetEngine puts an engine in the place of a store's own, which is closed.
func SetEngine(s *Store, e db.Engine, writers int, now func() till.Time) {
	s.db.Close()
	s.db = db.New(e, writers, now)
}

// Writers is how many write transactions run at once.
func Writers(s *Store) int { return s.db.Writers() }
