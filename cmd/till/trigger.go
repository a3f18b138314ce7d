package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/internal/dev/remote"
	"till/internal/dev/trigger"
)

// maxTriggerBody is the largest body that a file may hold: what the API takes.
const maxTriggerBody = 64 << 10

func newTrigger() *cobra.Command {
	var r remoteFlags
	var set []string
	var file string
	var watch, list, asJSON bool
	cmd := &cobra.Command{
		Use:   "trigger KIND|STORY",
		Short: "Make a story of the sandbox happen",
		Long: `Create a payment, payout or refund in the sandbox whose story brings an event, such as
payment.success, or that has a name, such as declined; payout.stuck is the payout's
story where both have one. The command chooses method and phone number; the service does
the rest, so the events are real ones. Use it to see what your handler does.

--list shows the stories. --set sets any member of the body: reference=ORDER-7 is a
text, metadata.cart:=88 is JSON. --body reads the members from a file. The service's own
checks apply. With --watch the command prints the events until the story ends.

webhook_endpoint.disabled disables the client's endpoint; with several, say which by
--set endpoint_id=ID. A payout needs a key with payouts:write; if the wallet has too
little, a payment comes first. A refund needs one with refunds:write; the payment that
it gives back comes first, and what you set is the payment's.`,
		Example: `  till trigger payment.success --set reference=ORDER-7 --watch
  till trigger late_money --set metadata.cart:=88
  till trigger --list`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if list == (len(args) == 1) {
				return errors.New("say which event or story, or --list: as 'till trigger payment.success'")
			}
			body, err := triggerBody(file, set)
			if err != nil {
				return err
			}
			c, err := r.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if list {
				stories, err := trigger.Stories(cmd.Context(), c)
				if err != nil {
					return err
				}
				return printStories(cmd.OutOrStdout(), stories, asJSON)
			}
			h, err := trigger.Do(cmd.Context(), c, trigger.Wish{Name: args[0], Body: body, Key: newUUID().String()})
			if err != nil {
				return explainScope(err)
			}
			return showTriggered(cmd, c, h, watch, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&set, "set", nil, "set a member of the body, as reference=ORDER-7 or metadata.cart:=88; may be repeated")
	f.StringVar(&file, "body", "", "file with members of the body, as JSON (default none)")
	f.BoolVar(&watch, "watch", false, "print the events until the story ends")
	f.BoolVar(&list, "list", false, "print the stories and end")
	r.add(cmd)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// triggerBody reads what is given of the body.
func triggerBody(file string, set []string) (map[string]any, error) {
	body := map[string]any{}
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		d := json.NewDecoder(io.LimitReader(f, maxTriggerBody))
		d.UseNumber()
		if err := d.Decode(&body); err != nil || d.More() {
			return nil, fmt.Errorf("%s is not one JSON object of at most %d bytes", file, maxTriggerBody)
		}
	}
	for _, text := range set {
		if err := trigger.Set(body, text); err != nil {
			return nil, fmt.Errorf("--set: %w", err)
		}
	}
	return body, nil
}

// explainScope says how to get a key that may.
func explainScope(err error) error {
	var refused *till.Error
	if errors.As(err, &refused) && refused.Code == till.CodeInsufficientScope {
		return &till.Error{Code: refused.Code, Detail: refused.Detail + " Make a key that may, with 'till key create --client ID --scopes payments:read,payments:write,payouts:read,payouts:write,refunds:write', and give it as TILL_API_KEY."}
	}
	return err
}

func printStories(w io.Writer, stories []trigger.Story, asJSON bool) error {
	if asJSON {
		items := []map[string]any{}
		for _, s := range stories {
			items = append(items, map[string]any{"subject": s.Subject, "name": s.Name, "ends_in": cli.TextOrNull(s.EndsIn), "description": s.Description,
				"status": s.Status, "failure_reason": cli.TextOrNull(s.Reason), "events": s.Events})
		}
		return cli.PrintJSON(w, map[string]any{"items": items})
	}
	return cli.Table(w, func(row func(...any)) {
		row("SUBJECT", "STORY", "PHONE", "ENDS AS", "EVENTS", "")
		for _, s := range stories {
			phone := "any other"
			if s.EndsIn != "" {
				phone = "…" + s.EndsIn
			}
			row(s.Subject, s.Name, phone, s.Status, strings.Join(shortKinds(s.Events), " "), s.Description)
		}
	})
}

// shortKinds are the events of one subject without its name.
func shortKinds(events []string) (out []string) {
	for _, e := range events {
		_, kind, _ := strings.Cut(e, ".")
		out = append(out, kind)
	}
	return out
}

// showTriggered prints what was made, and its events.
func showTriggered(cmd *cobra.Command, c *remote.Client, h *trigger.Happened, watch, asJSON bool) error {
	w := cmd.OutOrStdout()
	if asJSON && !watch {
		return cli.PrintJSON(w, h.Answer)
	}
	if !asJSON {
		if h.First {
			cli.Printf(w, "The wallet had too little; a payment came first.\n")
		}
		if h.Paid != "" {
			cli.Printf(w, "payment  %s  is paid, and given back\n", h.Paid)
		}
		cli.Printf(w, "%s  %s  %s  %s\n", strings.ReplaceAll(h.Story.Subject, "_", " "), h.ID(), h.Reference(), h.Story.Description)
	}
	if !watch {
		return nil
	}
	err := h.Watch(cmd.Context(), c, func(e trigger.Event) error {
		if asJSON {
			return cli.PrintJSON(w, e)
		}
		at, err := time.Parse(time.RFC3339Nano, e.CreatedAt)
		if err != nil {
			return fmt.Errorf("the time of event %d cannot be read", e.Sequence)
		}
		_, err = cli.Printf(w, "%s  %-22s %6d\n", at.Local().Format("15:04:05"), e.Type, e.Sequence)
		return err
	})
	if err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(w, h.Answer)
	}
	_, err = cli.Printf(w, "it is %s\n", h.Status())
	return err
}
