package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/doctor"
)

func newDoctor() *cobra.Command {
	var setup doctor.Setup
	var b bundle
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a setup for problems",
		Long: `Check a database and its server for what could lose an acknowledged payment or
stop the service. Use it before going live and after each change of the setup.
It changes nothing and may run beside a server. Of a database that Citus has
distributed it checks each node.

With --config it also checks each operator, without moving money. For an operator
that calls one address for all payments, it prints the address to register.

With --bundle it writes what somebody who helps needs to know into a file: version,
configuration, findings, metrics and the last lines of the log. It prints the list
first. No key, secret, phone number, name or client's address is in it. The
exit code is 0 if nothing is wrong, warnings included, 1 if something is wrong or
stops money, 2 if the check failed.`,
		Example: `  till doctor --config till.toml`,
		Args:    cobra.NoArgs,
	}
	cli.AddDatabase(cmd, &setup.Database)
	cmd.Flags().StringVar(&setup.SecretFile, "secret-file", "", "the file of the installation's secret, to check that it fits the database")
	cmd.Flags().StringVar(&setup.Listen, "listen", "", "the address that 'till serve' listens on, to check who can reach it")
	cli.AddOperatorFlags(cmd, &setup.Config, &setup.BaseURL)
	f := cmd.Flags()
	f.StringVar(&b.path, "bundle", "", "a file to write, a tar.gz for whoever helps (default none)")
	f.StringVar(&setup.Certificate, "tls-cert", "", "the certificate that 'till serve' or a proxy is given, to check when it ends (default the running server's)")
	f.StringVar(&b.admin, "admin-listen", "127.0.0.1:8081", "the running server's admin address, for its certificate and --bundle; empty leaves them out")
	f.StringVar(&setup.AdminTokenFile, "admin-token-file", "", adminTokenUsage)
	f.BoolVar(&b.profiles, "profiles", false, "add profiles of memory and goroutines to --bundle")
	f.BoolVar(&b.verify, "verify", false, "add the proof of the books to --bundle; it reads the whole database")
	return cli.Run(cmd, func(c *cli.Call) error {
		if err := cli.CheckFile(setup.Database); err != nil {
			return err
		}
		if setup.Certificate == "" && b.admin != "" {
			setup.Served = servedCertificates(c.Context(), b.admin, setup.AdminTokenFile)
		}
		setup.AdminListen = b.admin
		found, err := doctor.Examine(c.Context(), setup)
		if err != nil {
			return err
		}
		if b.path != "" {
			b.database, b.config, b.adminToken = setup.Database, setup.Config, setup.AdminTokenFile
			if err := b.write(c.Command, found); err != nil {
				return err
			}
		}
		err = c.Show(findingsObject(found), func(w io.Writer) error { return printFindings(w, found) })
		return cli.Problems(err, found.Worst() == doctor.Wrong)
	})
}

func findingsObject(found *doctor.Findings) cli.Object {
	check := func(f doctor.Finding) cli.Object {
		return cli.Object{"name", f.Name, "verdict", f.Verdict.String(), "detail", f.Detail}
	}
	return cli.Object{"checks", cli.Objects(found.All, check), "healthy", found.Worst() != doctor.Wrong}
}

func printFindings(w io.Writer, found *doctor.Findings) error {
	err := cli.Table(w, func(row func(cells ...any)) {
		for _, f := range found.All {
			row(f.Verdict, f.Name, f.Detail)
		}
	})
	if err == nil {
		_, err = cli.PrintLine(w, verdictOf(found))
	}
	return err
}

func verdictOf(found *doctor.Findings) string {
	switch {
	case found.Worst() == doctor.Wrong:
		return "Something is wrong."
	case len(found.Troubles) > 0:
		return troublesText(found.Troubles)
	case found.Worst() == doctor.Risky:
		return "Nothing is wrong; mind the warnings."
	}
	return "Nothing is wrong."
}

// servedCertificates returns what a running server says of its certificates; nothing if it
// does not answer, or serves none.
func servedCertificates(ctx context.Context, admin, tokenFile string) (out []doctor.ServedCertificate) {
	read, err := scrapeMetrics(ctx, admin, tokenFile)
	if err != nil {
		return nil
	}
	for _, s := range read.all["till_certificate_expiry_timestamp_seconds"] {
		var c doctor.ServedCertificate
		if s.value != 0 {
			c.Ends = time.Unix(int64(s.value), 0)
		}
		for _, l := range read.all["till_certificate_life_seconds"] {
			if l.label("name") == s.label("name") {
				c.Life = time.Duration(l.value) * time.Second
			}
		}
		out = append(out, c)
	}
	return out
}
