package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/internal/dev/faulty"
)

// proxyFlags say what the proxy does wrong.
type proxyFlags struct {
	loseAnswers, loseRequests, cut string
	slow, status                   []string
	seed                           uint64
}

func newProxy() *cobra.Command {
	var p proxyFlags
	var to, listen string
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Inject faults between a program and a service",
		Long: `Forward requests to a service and fail on purpose: lose answers after they were
made, lose requests, answer slowly, or answer with an error. Use it to see whether
your program asks each customer once although the network does not work. Point the
program at the address that the command prints. The same --seed makes the same
choices for the same requests. It prints a line for each request that it spoils.`,
		Example: `  till proxy --to http://127.0.0.1:8080 --lose-answers 20% --slow 2s:5% --status 503:3% --seed 7`,
		Args:    cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "the service, as http://127.0.0.1:8080")
	f.StringVar(&listen, "listen", "127.0.0.1:8081", "address to listen on; port 0 takes a free one")
	f.StringVar(&p.loseAnswers, "lose-answers", "", "share of requests that are done and never answered, as 20% (default none)")
	f.StringVar(&p.loseRequests, "lose-requests", "", "share of requests that never arrive, as 5% (default none)")
	f.StringVar(&p.cut, "cut", "", "share of answers of which only the first half comes, as 2% (default none)")
	f.StringArrayVar(&p.slow, "slow", nil, "time and share of requests that wait, as 2s:5%; may be repeated")
	f.StringArrayVar(&p.status, "status", nil, "status and share of requests that are answered with it, as 503:3%; may be repeated")
	f.Uint64Var(&p.seed, "seed", 1, "number that chooses which requests suffer")
	return cli.Run(cmd, func(c *cli.Call) error {
		rules, err := p.rules()
		if err != nil {
			return err
		}
		if to == "" {
			return errors.New("--to names the service, as http://127.0.0.1:8080")
		}
		proxy, err := faulty.New(to, p.seed, rules...)
		if err != nil {
			return err
		}
		defer proxy.Close()
		l, err := net.Listen("tcp", listen)
		if err != nil {
			return err
		}
		address := "http://" + l.Addr().String()
		if c.JSON {
			err = cli.PrintJSON(c.OutOrStdout(), cli.Object{"address", address, "to", to})
		} else {
			_, err = cli.Printf(c.OutOrStdout(), "Ready. %s goes to %s\n", address, to)
		}
		if err != nil {
			l.Close()
			return err
		}
		return serveProxy(c.Context(), c.OutOrStdout(), l, proxy, c.JSON)
	})
}

// rules reads the flags.
func (p *proxyFlags) rules() ([]faulty.Rule, error) {
	var rules []faulty.Rule
	for _, share := range []struct {
		flag, text string
		do         faulty.Fault
	}{{"lose-answers", p.loseAnswers, faulty.LoseAnswer}, {"lose-requests", p.loseRequests, faulty.LoseRequest}, {"cut", p.cut, faulty.Cut}} {
		if share.text == "" {
			continue
		}
		part, err := faulty.ParseShare(share.text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", share.flag, err)
		}
		rules = append(rules, faulty.Rule{Do: share.do, Share: part})
	}
	for _, text := range p.slow {
		r, err := faulty.ParseSlow(text)
		if err != nil {
			return nil, fmt.Errorf("--slow: %w", err)
		}
		rules = append(rules, r)
	}
	for _, text := range p.status {
		r, err := faulty.ParseStatus(text)
		if err != nil {
			return nil, fmt.Errorf("--status: %w", err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// serveProxy serves until the command is stopped, and reports what was spoiled.
func serveProxy(ctx context.Context, w io.Writer, l net.Listener, proxy *faulty.Proxy, asJSON bool) error {
	s := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	told := 0
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-look.C:
		case <-ctx.Done():
			soon, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if s.Shutdown(soon) != nil {
				s.Close()
			}
			<-ended
			return nil
		}
		seen := proxy.Seen()
		for _, r := range seen[told:] {
			if r.Fault == "" {
				continue
			}
			if asJSON {
				cli.PrintJSON(w, cli.Object{"at", r.At.UTC().Format(time.RFC3339Nano), "fault", r.Fault, "method", r.Method, "path", r.Path})
			} else {
				cli.Printf(w, "%s  %-12s  %s %s\n", r.At.Format("15:04:05"), string(r.Fault), r.Method, r.Path)
			}
		}
		told = len(seen)
	}
}
