package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/internal/dev/rehearse"
	"till/internal/dev/relay"
	"till/webhook"
)

// secretVariable is the variable that receivers have their secret in.
const secretVariable = "TILL_WEBHOOK_SECRET"

func addSecretFlag(cmd *cobra.Command, secret *string) {
	cmd.Flags().StringVar(secret, "secret", "", "the webhook secret, whsec_..., better given as "+secretVariable)
}

// readWebhookSecret reads a secret from its flag or its variable.
func readWebhookSecret(text string) (webhook.Secret, error) {
	if text == "" {
		text = os.Getenv(secretVariable)
	}
	return rehearse.SecretOf(text)
}

func newWebhookCheck() *cobra.Command {
	var secret, observe string
	var c rehearse.Config
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check URL",
		Short: "Test a handler of webhooks",
		Long: `Send 24 kinds of events to a handler, good, repeated, stale, forged and unusual ones,
and say what it gets wrong and what to change. Use it before a handler goes live, and
after each change to it. It needs no running service.

--observe names a command of yours that prints how often the payment $TILL_PAYMENT_ID was
acted on as paid, and after that, if you keep it, the payment's amount; $TILL_REFERENCE is
its reference. Without it, what only the effect can show is not seen, and never passed.

The handler acts on payments that nobody made, so run it against a test database. It must
be on this machine, unless you say --anywhere.`,
		Example: `  till webhook check http://localhost:3000/till --secret whsec_...
  till webhook check http://localhost:3000/till --observe './how-often.sh' --only at-once,late-money`,
		Args: cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if c.Secret, err = readWebhookSecret(secret); err != nil {
				return err
			}
			if c.URL = args[0]; observe != "" {
				c.Observe = observeBy(observe)
			}
			results, err := rehearse.Run(cmd.Context(), c)
			if err != nil {
				return err
			}
			return printChecks(cmd.OutOrStdout(), results, asJSON)
		},
	}
	f := cmd.Flags()
	addSecretFlag(cmd, &secret)
	f.StringVar(&observe, "observe", "", "command that prints how often $TILL_PAYMENT_ID was acted on (default none)")
	f.StringSliceVar(&c.Only, "only", nil, "names of checks, as good,at-once; may be repeated (default all)")
	f.BoolVar(&c.Anywhere, "anywhere", false, "send to other machines too")
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// The limits of an observing command.
const (
	observeTimeout = 10 * time.Second
	maxObserved    = 1 << 10
)

// observeBy runs a command of the shell that prints a count and, perhaps, an amount.
func observeBy(command string) rehearse.Observe {
	return func(ctx context.Context, payment, reference string) (int, string, error) {
		ctx, cancel := context.WithTimeout(ctx, observeTimeout)
		defer cancel()
		shell, flag := "sh", "-c"
		if runtime.GOOS == "windows" {
			shell, flag = "cmd", "/C"
		}
		cmd := exec.CommandContext(ctx, shell, flag, command)
		cmd.Env = append(os.Environ(), "TILL_PAYMENT_ID="+payment, "TILL_REFERENCE="+reference)
		cmd.WaitDelay = time.Second
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			return 0, "", fmt.Errorf("%w: %s", err, firstWords(errs.String()))
		}
		if len(out) > maxObserved {
			return 0, "", fmt.Errorf("it prints more than %d bytes", maxObserved)
		}
		words := strings.FieldsFunc(string(out), func(r rune) bool { return strings.ContainsRune(" \t\r\n|,;", r) })
		if len(words) == 0 {
			return 0, "", errors.New("it prints nothing, and not a count")
		}
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 0 {
			return 0, "", fmt.Errorf("it prints %q, and not a count", firstWords(string(out)))
		}
		if len(words) > 1 {
			return n, words[1], nil
		}
		return n, "", nil
	}
}

// printChecks prints the results, and returns errProblems if one failed.
func printChecks(w io.Writer, results []rehearse.Result, asJSON bool) error {
	n := map[rehearse.Verdict]int{}
	items := []map[string]any{}
	for _, r := range results {
		n[r.Verdict]++
		var acted *int
		if r.Acted >= 0 {
			acted = &r.Acted
		}
		items = append(items, map[string]any{"number": r.Number, "name": r.Name, "title": r.Title, "verdict": r.Verdict, "status": cli.TextOrNull(r.Status),
			"acted": acted, "advice": cli.TextOrNull(r.Advice), "see": cli.TextOrNull(r.See)})
	}
	var err error
	if asJSON {
		err = cli.PrintJSON(w, map[string]any{"checks": items, "passed": n[rehearse.Passed], "failed": n[rehearse.Failed], "not_seen": n[rehearse.NotSeen]})
	} else {
		err = printCheckTable(w, results, n)
	}
	if err == nil && n[rehearse.Failed] > 0 {
		return cli.ErrProblems
	}
	return err
}

var verdictWords = map[rehearse.Verdict]string{rehearse.Passed: "ok", rehearse.Failed: "FAILED", rehearse.NotSeen: "not seen"}

func printCheckTable(w io.Writer, results []rehearse.Result, n map[rehearse.Verdict]int) error {
	err := cli.Table(w, func(row func(...any)) {
		for _, r := range results {
			acted := ""
			if r.Acted >= 0 {
				acted = "acted " + strconv.Itoa(r.Acted)
			}
			row(fmt.Sprintf("%2d", r.Number), r.Name, r.Title, r.Status, acted, verdictWords[r.Verdict])
		}
	})
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Advice == "" {
			continue
		}
		see := ""
		if r.See != "" {
			see = " See " + r.See
		}
		cli.Printf(w, "\n%2d  %s%s\n", r.Number, r.Advice, see)
	}
	_, err = cli.Printf(w, "\n%d passed, %d failed, %d not seen\n", n[rehearse.Passed], n[rehearse.Failed], n[rehearse.NotSeen])
	if err == nil && slices.ContainsFunc(results, func(r rehearse.Result) bool { return r.Verdict == rehearse.NotSeen && r.Acted < 0 }) && n[rehearse.Failed] == 0 {
		_, err = cli.Printf(w, "What was not seen needs --observe: a command that prints how often a payment was acted on.\n")
	}
	return err
}

func newWebhookVerify() *cobra.Command {
	var secret, received, key string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Say why a captured webhook does not verify",
		Long: `Read a request as your server received it, and say why its signature does not verify:
the wrong kind of secret, a body that was written anew (the command tries how), a header
that a proxy renamed, or a clock. Use it when a handler refuses what Till sends.

The file has the headers, an empty line and the body as they came; a request line may
precede them. JSON with the members headers and body, where body is a text, is read too.
- reads standard input. The signature is checked without a service. With an API key the
command also knows the secret of 'till listen'.`,
		Example: `  till webhook verify request.txt --secret whsec_...
  till webhook verify request.txt --received 2026-11-17T09:15:42Z`,
		Args: cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := readWebhookSecret(secret)
			if err != nil {
				return err
			}
			var at time.Time
			if received != "" {
				if at, err = time.Parse(time.RFC3339, received); err != nil {
					return fmt.Errorf("--received: %q is no time such as 2026-11-17T09:15:42Z", received)
				}
			}
			in := cmd.InOrStdin()
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			request, err := rehearse.ReadCapture(in)
			if err != nil {
				return err
			}
			others := map[string]webhook.Secret{}
			if key != "" {
				others["the secret of 'till listen'"] = relay.Secret(key)
			}
			return printExplanation(cmd.OutOrStdout(), rehearse.Explain(request, s, at, others), asJSON)
		},
	}
	f := cmd.Flags()
	addSecretFlag(cmd, &secret)
	f.StringVar(&received, "received", "", "when the request came, as 2026-11-17T09:15:42Z (default its Date header, if it has one)")
	f.StringVar(&key, "api-key", "", "the client's key, better given as TILL_API_KEY (default none)")
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

func printExplanation(w io.Writer, e rehearse.Explanation, asJSON bool) error {
	if asJSON {
		if err := cli.PrintJSON(w, map[string]any{"verifies": e.Verifies, "reasons": e.Reasons}); err != nil {
			return err
		}
	} else {
		for _, reason := range e.Reasons {
			if _, err := cli.PrintLine(w, reason); err != nil {
				return err
			}
		}
	}
	if !e.Verifies {
		return cli.ErrProblems
	}
	return nil
}
