package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"till/engine"
	"till/server"
	"till/store"
)

func newPaymentResolve() *cobra.Command {
	var client, database, secretFile, as, evidence, by, receipt string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "resolve ID",
		Short: "End a payment on the operator's word that you bring",
		Long: `End a payment on the operator's word that a person brings: a statement, a
letter, a screen shot. It is recorded with the name of whoever says so and the
SHA-256 of the evidence; the file itself is not stored, so keep it. A payment
that has ended keeps its status: money that came for it is credited as late
money, and money that the operator took back (reversed) is taken from the
client's wallet, or owed by the client where the wallet lacks it.`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if as != "success" && as != "failed" && as != "reversed" {
				return errors.New("--as is success, failed or reversed")
			}
			if receipt != "" && !isPlainLine(receipt, maxReceipt) {
				return fmt.Errorf("--receipt must be plain text of at most %d characters", maxReceipt)
			}
			shown, err := readEvidence(evidence)
			if err != nil {
				return err
			}
			r := engine.Resolution{Success: as == "success", Reversed: as == "reversed", Receipt: receipt, By: by, Evidence: shown.String(), Digest: shown.digest}
			return withDatabase(cmd.Context(), database, func(s *store.Store) error {
				p, err := findPayment(cmd.Context(), s, args[0], client)
				if err != nil {
					return err
				}
				ref := store.Ref{Client: p.ClientID, ID: p.ID}
				err = withDesks(cmd, s, database, secretFile, func(d desks) error { return d.payments.Resolve(cmd.Context(), ref, r) })
				if err != nil {
					return err
				}
				return printResolved(cmd, s, ref, asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&as, "as", "", "success, failed or reversed (required)")
	f.StringVar(&evidence, "evidence", "", "file that shows it, at most 64 MiB; its SHA-256 is recorded (required)")
	addByFlag(cmd, &by, "who says so (required)")
	f.StringVar(&receipt, "receipt", "", "the operator's receipt, where the evidence shows one")
	f.StringVar(&client, "client", "", "the client's id, to find the payment faster")
	f.StringVar(&secretFile, "secret-file", "", "the installation's secret (default till.secret beside the database)")
	for _, name := range []string{"as", "evidence", "by"} {
		cmd.MarkFlagRequired(name)
	}
	addDatabaseFlag(cmd, &database)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// Limits of a resolution: of what it names in characters, of the evidence in
// bytes.
const (
	maxReceipt  = 128
	maxEvidence = 64 << 20
)

// isPlainLine reports whether a text is 1 to longest printable characters.
func isPlainLine(text string, longest int) bool {
	n := utf8.RuneCountInString(text)
	return 0 < n && n <= longest && utf8.ValidString(text) && strings.TrimSpace(text) == text &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// evidence is a file that shows something: its name, phone numbers masked, and
// the SHA-256 of what is in it. What is in it is not kept.
type evidence struct {
	name   string
	digest []byte
}

// String returns how the audit log names it.
func (p *evidence) String() string {
	return "evidence " + p.name + " sha256:" + hex.EncodeToString(p.digest)
}

func readEvidence(path string) (*evidence, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, maxEvidence+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the evidence: %w", err)
	case n > maxEvidence:
		return nil, fmt.Errorf("the evidence %s is larger than %d MiB", path, maxEvidence>>20)
	case n == 0:
		return nil, fmt.Errorf("the evidence %s is empty", path)
	}
	return &evidence{name: server.Redact(filepath.Base(path)), digest: sum.Sum(nil)}, nil
}

func printResolved(cmd *cobra.Command, s *store.Store, ref store.Ref, asJSON bool) error {
	var p *store.PaymentRow
	err := s.View(cmd.Context(), func(tx *store.Tx) (err error) {
		p, err = tx.Payment(cmd.Context(), ref)
		return err
	})
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if asJSON {
		return printJSON(w, map[string]any{"payment_id": p.ID.String(), "client_id": p.ClientID.String(), "status": p.Status})
	}
	if p.ReversedEvent != 0 {
		_, err = printf(w, "payment %s: stays %s; its money was taken back\n", p.ID, p.Status)
		return err
	}
	if p.LateEvent != 0 {
		_, err = printf(w, "payment %s: stays %s; its money was credited late\n", p.ID, p.Status)
		return err
	}
	_, err = printf(w, "payment %s: %s\n", p.ID, p.Status)
	return err
}
