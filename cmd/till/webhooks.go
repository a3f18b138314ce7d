package main

import (
	"errors"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/store"
	"till/store/webhooks"
	"till/webhook"
)

func newWebhook() *cobra.Command {
	return cli.NewGroup("webhook", "Test a handler, or send events to it again", newWebhookReplay(), newWebhookCheck(), newWebhookVerify())
}

func newWebhookReplay() *cobra.Command {
	var client till.ID
	var by string
	var from, to int64
	var failed bool
	cmd := &cobra.Command{
		Use:   "replay ENDPOINT",
		Short: "Send events to an endpoint again",
		Long: `Send events to an endpoint again, as its client can through the API: a range of
the log, both ends included, or with --failed the events that were given up and
those of the time when the endpoint was disabled. Use it when a receiver has lost
events. The running server sends them after the live ones, at most 50 per second.
The command prints how many were queued.`,
		Example: `  till webhook replay 0197a3d2-8e53-7044-9f71-3dcea0908172 --failed --by "Awa N."`,
		Args:    cli.OneArg,
	}
	flags := cmd.Flags()
	cli.AddAnyClient(cmd, &client, "the client's id, to find it faster")
	flags.Int64Var(&from, "from", 0, "the sequence of the first event (default none, with --failed)")
	flags.Int64Var(&to, "to", 0, "the sequence of the last event (default the end of the log)")
	flags.BoolVar(&failed, "failed", false, "send the events that were given up, instead of a range")
	cli.AddBy(cmd, &by, "the person who asks for it")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		ask := &webhook.Replay{}
		flags := c.Flags()
		if flags.Changed("from") {
			ask.From = &from
		}
		if flags.Changed("to") {
			ask.To = &to
		}
		if failed {
			ask.Failed = &failed
		}
		switch {
		case failed && (ask.From != nil || ask.To != nil):
			return errors.New("--failed stands without --from and --to")
		case !failed && ask.From == nil:
			return errors.New("say --from, with --to or without it, or --failed")
		case by == "":
			return errors.New("--by says who asks for it")
		}
		ref, err := findEndpoint(c, c.Args[0], client)
		if err != nil {
			return err
		}
		acts := &webhook.Endpoints{Store: c.Store}
		out, err := acts.Replay(c.Context(), ref.Client, ref.ID, ask, webhook.Requester{Actor: by, Scopes: till.Scopes})
		if err != nil {
			return err
		}
		return printReplayed(c, ref, out)
	})
}

func printReplayed(c *cli.Call, ref store.Ref, out webhook.Replayed) error {
	var events, from, to any
	count := any("not counted, there are too many")
	if out.Events >= 0 {
		events, count = out.Events, out.Events
	}
	if out.From > 0 {
		from, to = out.From, out.To
	}
	return c.Lines(cli.Object{"client_id", ref.Client, "deliveries", out.Deliveries, "endpoint_id", ref.ID, "events", events,
		"from_sequence", from, "stretches", out.Ranges, "to_sequence", to}, func(row func(...any)) {
		row("endpoint", ref.ID)
		row("client", ref.Client)
		row("events queued", count)
		if out.From > 0 {
			row("from sequence", out.From)
			row("to sequence", out.To)
			return
		}
		row("tried again", out.Deliveries)
		row("times out of service", out.Ranges)
	})
}

// findEndpoint returns an endpoint, of any client unless one is named. It
// returns CodeEndpointNotFound.
func findEndpoint(c *cli.Call, text string, client till.ID) (ref store.Ref, err error) {
	if ref.ID, err = cli.ParseID(text, "webhook endpoint"); err != nil {
		return ref, err
	}
	missing := till.Errorf(till.CodeEndpointNotFound, "there is no such webhook endpoint")
	look := func(owner till.ID) (e *webhooks.Endpoint, err error) {
		ref.Client = owner
		err = c.View(func(tx *store.Tx) error { e, err = webhooks.ReadEndpoint(c.Context(), tx, ref); return err })
		return e, err
	}
	if !client.IsZero() {
		e, err := look(client)
		if err == nil && e == nil {
			err = missing
		}
		return ref, err
	}
	found := false
	err = c.Store.EachClient(c.Context(), func(owner *till.Client) (bool, error) {
		e, err := look(owner.ID)
		found = e != nil
		return !found, err
	})
	if err == nil && !found {
		err = missing
	}
	return ref, err
}
