package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"till"
	"till/cmd/till/internal/cli"
	"till/privacy"
)

// The limits of a list of erasures.
const (
	maxErasedLine = 4 << 10
	maxErasedList = 1_000_000
)

// erasedLine is one erasure in a list. It has no number, only what the rows have instead of
// it.
type erasedLine struct {
	Token    string `json:"token,omitempty"`
	Before   string `json:"before,omitempty"`
	Metadata bool   `json:"metadata"`
	At       string `json:"at"`
	By       string `json:"by"`
	Reason   string `json:"reason"`
	Check    string `json:"check"` // only the installation can write a line: --again deletes by it
}

// sum returns the check of a line under the installation's secret.
func (l erasedLine) sum(secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(fmt.Appendf(nil, "till erased list\x00%s\x00%s\x00%t", l.Token, l.Before, l.Metadata))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// appendErased adds erasures to a list, through to the disk, before anything is erased: what
// is interrupted is known there.
func appendErased(path string, secret []byte, r privacy.EraseRequest, now till.Time) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("the list of erasures: %w", err)
	}
	for _, x := range r.Erasures {
		l := erasedLine{Metadata: x.Texts, At: now.String(), By: r.By, Reason: r.Reason}
		if x.Phone != "" {
			l.Token = privacy.ErasedToken(secret, x.Phone)
		} else {
			l.Before = x.Before.String()
		}
		l.Check = l.sum(secret)
		b, err := json.Marshal(l)
		if err == nil {
			_, err = f.Write(append(b, '\n'))
		}
		if err != nil {
			return errors.Join(fmt.Errorf("the list of erasures: %w", err), f.Close())
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

// readErased reads a list. A last line that was not written completely is skipped: nothing
// was erased for it. Any other line that is not the installation's own is an error.
func readErased(path string, secret []byte) ([]privacy.Erasure, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the list of erasures: %w", err)
	}
	defer f.Close()
	var out []privacy.Erasure
	in := bufio.NewReaderSize(f, maxErasedLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		var l erasedLine
		if err != nil || n > maxErasedList || json.Unmarshal(bytes.TrimSpace(line), &l) != nil || !hmac.Equal([]byte(l.Check), []byte(l.sum(secret))) {
			return nil, fmt.Errorf("line %d of %s is no erasure of this installation; nothing was erased", n, path)
		}
		x := privacy.Erasure{Token: l.Token, Texts: l.Metadata}
		if l.Token == "" {
			if x.Before, err = cli.ParseMoment("before", l.Before); err != nil {
				return nil, fmt.Errorf("line %d of %s: %w", n, path, err)
			}
		}
		out = append(out, x)
	}
}
