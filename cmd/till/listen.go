package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/internal/dev/faulty"
	"till/internal/dev/relay"
	"till/webhook"
)

// listenFlags say what is forwarded, and how unkindly.
type listenFlags struct {
	remoteFlags
	to, name, since, lose, repeat string
	events                        []string
	shuffle                       bool
	seed                          uint64
}

// handlerNetworks are where a handler that is being written may listen: this machine and
// the private networks of its containers.
var handlerNetworks = append([]string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"}, webhook.Loopback...)

func newListen() *cobra.Command {
	var l listenFlags
	var asJSON, printSecret bool
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Forward events to a handler on this machine",
		Long: `Read the event log of a client and post each event to a handler, signed as the
service signs webhooks. Use it while you write a handler: no endpoint has to be
registered, and the service need not reach this machine. The signing secret is derived
from the API key, so it is the same at every start; --print-secret prints it alone.

Events of one payment are posted in order, one at a time. What the handler does not
answer with 2xx is tried again after 1, 2, 5, 10 and then every 30 seconds; type r and
Enter to try it now. The cursor is kept in the data folder, so events that happen while
the command is off come later. The first start begins with the next event. Two of these
commands at once need a cursor each: give the second one a --name.

--lose, --repeat and --shuffle make it unkind on purpose: events that never come (your
sweep has to find them), come twice, or come in any order.`,
		Example: `  till listen --forward-to http://localhost:3000/till
  till listen --forward-to http://localhost:3000/till --events payment.* --since start --repeat 10% --shuffle`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if printSecret {
				if _, err := l.client(); err != nil {
					return err
				}
				secret := relay.Secret(l.apiKey).Reveal()
				if asJSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"secret": secret})
				}
				_, err := cli.PrintLine(cmd.OutOrStdout(), secret)
				return err
			}
			c, err := l.config()
			if err != nil {
				return err
			}
			defer c.Service.Close()
			show := listenOutput{w: cmd.OutOrStdout(), notices: cmd.ErrOrStderr(), json: asJSON, secret: c.Secret.Reveal()[:shortSecret]}
			c.Started = func(after int64) { show.started(c, after) }
			c.Report, c.Notice, c.TryNow = show.report, show.notice, tryNow(cmd.InOrStdin())
			return relay.Run(cmd.Context(), *c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&l.to, "forward-to", "", "address of the handler, as http://localhost:3000/till")
	f.StringVar(&l.name, "name", "", "name of a cursor of its own, for a second command beside the first")
	f.StringSliceVar(&l.events, "events", nil, "kinds to forward, as payment.* or payment.success; may be repeated (default all)")
	f.StringVar(&l.since, "since", "", "begin after this sequence, at the 'start' of the log, or 'now' (default where it stopped)")
	f.BoolVar(&printSecret, "print-secret", false, "print the signing secret and end")
	f.StringVar(&l.lose, "lose", "", "share of events that are never posted, as 20% (default none)")
	f.StringVar(&l.repeat, "repeat", "", "share of events that are posted twice, as 10% (default none)")
	f.BoolVar(&l.shuffle, "shuffle", false, "post in any order, also the events of one payment")
	f.Uint64Var(&l.seed, "seed", 1, "number that chooses which events suffer")
	l.add(cmd)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

var validListenName = regexp.MustCompile(`^[0-9A-Za-z-]{1,40}$`)

// config reads the flags.
func (l *listenFlags) config() (*relay.Config, error) {
	if l.to == "" {
		return nil, errors.New("--forward-to names the handler, as http://localhost:3000/till")
	}
	if l.name != "" && !validListenName.MatchString(l.name) {
		return nil, errors.New("--name: at most 40 letters, digits and hyphens")
	}
	c := &relay.Config{To: l.to, Kinds: l.events, Shuffle: l.shuffle, Seed: l.seed}
	err := relay.CheckKinds(l.events)
	if err == nil {
		c.Allow, err = webhook.ParseAllowed(handlerNetworks)
	}
	if err == nil {
		err = webhook.CheckURL(l.to, "", c.Allow)
	}
	if err != nil {
		return nil, err
	}
	switch l.since {
	case "":
	case "now":
		c.FromNow = true
	case "start":
		c.Since = new(int64)
	default:
		n, err := strconv.ParseInt(l.since, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("--since: %q is no sequence of an event, nor start or now", l.since)
		}
		c.Since = &n
	}
	for _, share := range []struct {
		flag, text string
		set        *float64
	}{{"lose", l.lose, &c.Lose}, {"repeat", l.repeat, &c.Repeat}} {
		if share.text == "" {
			continue
		}
		if *share.set, err = faulty.ParseShare(share.text); err != nil {
			return nil, fmt.Errorf("--%s: %w", share.flag, err)
		}
	}
	if c.Service, err = l.client(); err != nil {
		return nil, err
	}
	c.Secret = relay.Secret(l.apiKey)
	c.CursorFile = filepath.Join(l.data, "listen-cursor.json")
	if l.name != "" {
		c.CursorFile = filepath.Join(l.data, "listen-cursor-"+l.name+".json")
	}
	return c, nil
}

// tryNow notifies of each line that says r.
func tryNow(in io.Reader) <-chan struct{} {
	asked := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			if strings.TrimSpace(lines.Text()) == "r" {
				asked <- struct{}{}
			}
		}
	}()
	return asked
}

// listenOutput prints what till listen does.
type listenOutput struct {
	mu         sync.Mutex
	w, notices io.Writer
	json       bool
	secret     string // how it begins
	hinted     bool   // what a wrong secret looks like was said
}

// shortSecret is how much of the secret is shown unasked.
const shortSecret = 12

func (o *listenOutput) started(c *relay.Config, after int64) {
	if o.json {
		cli.PrintJSON(o.w, map[string]any{"listening": true, "base_url": c.Service.Base(), "forward_to": c.To, "after": after, "secret": c.Secret.Reveal()})
		return
	}
	cli.Printf(o.w, "Ready. Signing secret  %s…  ('till listen --print-secret' prints it for TILL_WEBHOOK_SECRET)\n       Forwarding to %s, after event %d\n",
		c.Secret.Reveal()[:shortSecret], c.To, after)
}

func (o *listenOutput) notice(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	cli.Printf(o.notices, "till: %s\n", text)
}

// hint says once, when a handler refuses an event, that its secret may be another one: every API
// key has its own.
func (o *listenOutput) hint(r relay.Report) {
	refused := r.Response.Status == http.StatusBadRequest || r.Response.Status == http.StatusUnauthorized || r.Response.Status == http.StatusForbidden
	if !refused || o.hinted {
		return
	}
	o.hinted = true
	cli.Printf(o.notices, "till: the handler answered %d: does it verify with the secret of this API key? That begins %s; 'till listen --print-secret' prints it, with the same --api-key or TILL_API_KEY.\n",
		r.Response.Status, o.secret)
}

func (o *listenOutput) report(r relay.Report) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.hint(r)
	if o.json {
		cli.PrintJSON(o.w, map[string]any{"at": r.At.UTC().Format(time.RFC3339Nano), "event_id": r.EventID, "type": r.Kind, "sequence": r.Sequence, "subject_id": r.Subject,
			"reference": cli.TextOrNull(r.Reference), "status": r.Response.Status, "problem": cli.TextOrNull(r.Response.Problem), "took_ms": r.Response.Took.Milliseconds(),
			"accepted": r.Accepted, "lost": r.Lost, "copy": r.Copy, "next_try_seconds": int(r.Next.Seconds()), "answer": cli.TextOrNull(r.Response.Body)})
		return
	}
	status, more := strconv.Itoa(r.Response.Status), ""
	switch {
	case r.Lost:
		status, more = "lost", "  on purpose"
	case !r.Accepted:
		if r.Response.Status == 0 {
			status = "none"
		}
		more = "  " + strconv.Quote(firstWords(relay.Words(r.Response)))
	}
	if r.Copy {
		more += "  the second of two, on purpose"
	}
	if r.Next > 0 {
		more += fmt.Sprintf("  again in %d s", int(r.Next.Seconds()))
	}
	cli.Printf(o.w, "%s  %-22s %6d  %.8s…  %-14s  %-4s %5d ms%s\n", r.At.Format("15:04:05"), r.Kind, r.Sequence, r.Subject, firstWords(r.Reference), status, r.Response.Took.Milliseconds(), more)
}

// firstWords returns the beginning of a text, for one line.
func firstWords(text string) string {
	const most = 60
	text = strings.Join(strings.Fields(text), " ")
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most]) + "…"
	}
	return text
}
