package story_test

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"testing"

	"till"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
	"till/story"
)

func TestCleanNote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"  called back \r\n tomorrow ":         "called back \n tomorrow",
		"":                                     "",
		" \n ":                                 "",
		"a\x00b":                               "",
		"right \u202e to left":                 "",
		"\xff":                                 "",
		strings.Repeat("é", 500):               strings.Repeat("é", 500),
		strings.Repeat("é", 501):               "",
		strings.Repeat("a\n", 9) + "b":         strings.Repeat("a\n", 9) + "b",
		strings.Repeat("a\n", 10) + "b":        "",
		"<img src=x onerror=alert(1)> is text": "<img src=x onerror=alert(1)> is text",
	} {
		got, err := story.CleanNote(text)
		if got != want || (err != nil) != (want == "") || err != nil && till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestANoteIsWrittenOnceAndAudited(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client, other := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test)
		c := storetest.NewCollector(t, s)
		p := storetest.NewPayment(t, c, client, storetest.Body{})
		ref := store.Ref{Client: client.ID, ID: p.ID}
		note := auditlog.Note{Ref: ref, ID: till.NewID(s.Now()), Actor: "person:Anne Ndala", Text: "paid twice, calls 242061234567 back"}
		add := func(n auditlog.Note) till.Code {
			return till.ErrorCode(story.AddNote(t.Context(), s, till.SubjectPayment, n))
		}
		for range 2 {
			if code := add(note); code != "" {
				t.Fatal(code)
			}
		}
		changed, foreign, strange := note, note, note
		changed.Text = "something else"
		foreign.Ref.Client = other.ID
		strange.ID, strange.Text = till.NewID(s.Now()), ""
		for want, n := range map[till.Code]auditlog.Note{till.CodeKeyReused: changed, till.CodePaymentNotFound: foreign, till.CodeValidationFailed: strange} {
			if code := add(n); code != want {
				t.Errorf("%+v: %q, want %q", n, code, want)
			}
		}
		if code := till.ErrorCode(story.AddNote(t.Context(), s, till.SubjectPayout, note)); code != till.CodePayoutNotFound {
			t.Errorf("a payment's id as a payout: %q", code)
		}
		err := s.View(t.Context(), func(tx *store.Tx) error {
			history, err := story.ReadStory(t.Context(), tx, till.SubjectPayment, ref)
			if err != nil {
				return err
			}
			if len(history.Notes) != 1 || history.Notes[0].Text != note.Text || history.Notes[0].Actor != note.Actor || len(history.Acts) != 0 {
				t.Errorf("the history has %+v and %+v", history.Notes, history.Acts)
			}
			moments := history.Timeline()
			found := false
			for _, m := range moments {
				found = found || m.Kind == story.MomentNote && m.Group == story.AboutPeople && m.Note.Text == note.Text
			}
			if !found {
				t.Errorf("the timeline has no note: %+v", moments)
			}
			acts, err := auditlog.ActsOn(t.Context(), tx, ref, 10)
			want := sha256.Sum256([]byte(note.Text))
			if len(acts) != 1 || acts[0].Action != story.ActNote || string(acts[0].Evidence) != string(want[:]) || strings.Contains(acts[0].Detail, "242061234567") {
				t.Errorf("the audit log has %+v", acts)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range story.MaxNotes {
			n := note
			n.ID, n.Text = till.NewID(s.Now()), strconv.Itoa(i)
			if code := add(n); (code == till.CodeValidationFailed) != (i == story.MaxNotes-1) {
				t.Fatalf("note %d: %q", i+2, code)
			}
		}
	})
}
