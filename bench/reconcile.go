package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"till"
	"till/bench/seed"
	"till/store"
	"till/store/admin"
	"till/store/matching"
)

const (
	reconcileLines  = 1_000_000 // of the statement, at most
	reconcileEvery  = 1_000     // every so many lines one differs
	reconcileRounds = 3
	seedConnection  = "seed" // of seeded payments
)

// measureReconcile compares an operator's statement with the latest million
// payments of the large database, by the shipped program.
func measureReconcile(ctx context.Context, r *engineRun) error {
	bed, err := r.largeTestbed(ctx)
	if err != nil {
		return err
	}
	statement := filepath.Join(bed.dir, "statement.csv")
	lines, err := bed.writeStatement(ctx, r.report.Seeding, statement)
	if err != nil {
		return err
	}
	if err := r.db.vacuum(ctx, bed.name); err != nil {
		return err
	}
	r.logf("wrote a statement of %d lines", lines)
	var times, memory []float64
	for range reconcileRounds {
		server := r.db.cpu()
		took, cpu, peak, err := bed.reconcile(ctx, statement, lines)
		if err != nil {
			return err
		}
		r.logf("compared in %.1f s (%.1f s of CPU, %.1f s of the server's), %s at most", took.Seconds(), cpu.Seconds(), (r.db.cpu() - server).Seconds(), megabytes(peak))
		times, memory = append(times, ms(took)), append(memory, float64(peak)/1e6)
	}
	r.record(goalReconcile, times)
	r.record(goalReconcileM, memory)
	return nil
}

// writeStatement writes what an operator would say of the latest payments, and
// gives them what the comparison reads. It returns the number of lines.
func (s *testbed) writeStatement(ctx context.Context, d *seeding, path string) (lines int64, err error) {
	st, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	client, err := s.client(ctx, st)
	if err != nil {
		return 0, err
	}
	from := d.to - (d.to-d.from)/till.Time(d.Rows)*till.Time(min(d.Rows, reconcileLines))
	if err := seed.Ledger(ctx, st, client.ID, from, d.to); err != nil {
		return 0, err
	}
	err = st.Update(ctx, func(tx *store.Tx) error {
		return admin.SetConnectionFingerprint(ctx, tx, seedConnection, seedConnection)
	})
	if err != nil {
		return 0, err
	}
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, "time,reference,receipt,amount,currency,status,description")
	last := till.LastID(d.to)
	for after := till.LastID(from - 1); ; {
		var rows []matching.ReconcileRow
		err := st.View(ctx, func(tx *store.Tx) (err error) {
			rows, err = matching.ReconcileRows(ctx, tx, till.SubjectPayment, seedConnection, client.ID, after, last, 10_000, nil)
			return err
		})
		if err != nil {
			return 0, errors.Join(err, f.Close())
		}
		if len(rows) == 0 {
			break
		}
		after = rows[len(rows)-1].ID
		for i := range rows {
			lines++
			c := &rows[i]
			amount := c.Amount.Minor
			if lines%reconcileEvery == 0 {
				amount--
			}
			status := string(c.Status)
			if !c.Status.Final() {
				status = "pending"
			}
			fmt.Fprintf(w, "%s,%s,OP%012d,%d,%s,%s,\"Two bags of rice, paid\"\n", c.CreatedAt, c.Reference, lines, amount, c.Amount.Currency, status)
		}
	}
	return lines, errors.Join(w.Flush(), f.Close())
}

// reconcile runs the comparison once and returns its time, CPU time and
// peak memory.
func (s *testbed) reconcile(ctx context.Context, statement string, lines int64) (took, cpu time.Duration, peak int64, err error) {
	cmd := exec.CommandContext(ctx, s.in.program, "reconcile", "--database", s.url, "--connection", seedConnection, "--statement", statement,
		"--map", `amount_unit = "minor"`, "--output", filepath.Join(s.dir, "differences.csv"), "--json")
	cmd.Env = plainEnv()
	var b, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &stderr
	began := time.Now()
	err = cmd.Run()
	took = time.Since(began)
	var found struct {
		Lines, Differences int64
		Classes            []struct {
			Class string
			Count int64
		}
	}
	// The exit code is 1, because there are differences.
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	if err == nil {
		err = json.Unmarshal(b.Bytes(), &found)
	}
	if err != nil {
		return 0, 0, 0, fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	matched := int64(0)
	for _, c := range found.Classes {
		if c.Class == "matched" || c.Class == "no_money" {
			matched += c.Count
		}
	}
	if found.Lines != lines || matched+found.Differences != lines || matched < lines*9/10 {
		return 0, 0, 0, errors.New("the comparison found " + strconv.FormatInt(matched, 10) + " matches: " + b.String())
	}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		if peak = int64(u.Maxrss); runtime.GOOS == "linux" {
			peak <<= 10
		}
	}
	return took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak, nil
}
