package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"till"
	"till/cmd/till/internal/cli"
	"till/journal"
	"till/privacy"
	"till/recovery"
	"till/store"
)

// remake makes what is lost again from the journals; nil if none was named.
func (r *restoredFlags) remake(ctx context.Context, s *store.Store, secret []byte, lostFrom till.Time) (*recovery.RemakeResult, error) {
	if len(r.journals) == 0 {
		if r.skipDamaged {
			return nil, errors.New("--skip-damaged is about a journal: name it with --journal")
		}
		return nil, nil
	}
	out, err := recovery.Remake(ctx, s, recovery.RemakeRequest{
		Secret: secret, Folders: r.journals, LostFrom: lostFrom, SkipDamaged: r.skipDamaged, By: cli.Actor(),
	})
	var damaged *recovery.DamagedError
	if errors.As(err, &damaged) {
		return nil, fmt.Errorf("%w. Nothing was made again: %d records can be read, and --skip-damaged goes on with them", err, damaged.Report.Records)
	}
	return out, err
}

func placesOf(places []journal.Place) []string {
	out := make([]string, len(places))
	for i, p := range places {
		out[i] = p.String()
	}
	return out
}

// remadeJSON is what was made again, as the command prints it.
func remadeJSON(m *recovery.RemakeResult) map[string]any {
	return map[string]any{
		"segments": m.Report.Segments, "records": m.Report.Records, "cut": placesOf(m.Report.Cut), "damaged": placesOf(m.Report.Damaged),
		"payments": m.Payments, "payouts": m.Payouts, "clients": m.Clients, "retried": m.Retried, "waiting": m.Waiting,
	}
}

func printRemade(w io.Writer, m *recovery.RemakeResult) {
	if m == nil {
		return
	}
	cli.Printf(w, "The journal has %s in %s. %s and %s that the database lacked were made again: they are asked about and not sent.\n",
		cli.Count(m.Report.Records, "record", "records"), cli.Count(m.Report.Segments, "segment", "segments"),
		cli.Count(m.Payments, "payment", "payments"), cli.Count(m.Payouts, "payout", "payouts"))
	for _, p := range m.Report.Cut {
		cli.Printf(w, "Not written completely, because the program or the machine stopped: %s.\n", p)
	}
	for _, p := range m.Report.Damaged {
		cli.Printf(w, "Altered, and left out: %s.\n", p)
	}
	if m.Clients > 0 {
		cli.Printf(w, "%s made again, without a key, methods and fees: 'till client' and 'till key create' set them.\n", cli.Count(m.Clients, "client was", "clients were"))
	}
	if m.Retried > 0 {
		cli.Printf(w, "%s made anew by a client's retry already: asked about, and not sent.\n", cli.Count(m.Retried, "lost payment was", "lost payments were"))
	}
	if m.Waiting > 0 {
		cli.Printf(w, "%s for money that came in during the lost time, a refund also for an earlier one to end and for the level to be raised: "+
			"start the service, let it settle the payments, and run the same command again.\n",
			cli.Count(m.Waiting, "payout waits", "payouts wait"))
	}
}

// eraseAgain erases what a list names; nil if none was named.
func (r *restoredFlags) eraseAgain(ctx context.Context, s *store.Store, secret []byte) (*privacy.EraseResult, error) {
	if r.erasedList == "" {
		return nil, nil
	}
	list, err := readErased(r.erasedList, secret)
	if err != nil {
		return nil, err
	}
	return privacy.Erase(ctx, s, privacy.EraseRequest{Secret: secret, Erasures: list, By: cli.Actor(), Reason: "an older backup was put back"})
}
