package console

import (
	"context"
	"strings"
	"testing"

	"till"
	"till/store"
	"till/store/access"
)

// Every act has words in the log, those that were refused and those that a later
// release writes too; phones have the form that they have elsewhere.
func TestTheAuditSpeaksInWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.write("payment.create", "5000 XAF asked from 242******567 by mtn_momo")
	w.write("role.set.refuse", "without people.manage")
	w.write("tomorrow.act", "")
	for lang, want := range map[string][]string{
		"en": {"<b>Refused: Role given</b>", "<b>Other act</b>", "242\u00a0•••\u00a0567 by", "tomorrow.act</dd>"},
		"fr": {"<b>Refusé\u00a0: Rôle donné</b>", "<b>Autre acte</b>", "Paiement demandé</a>"},
	} {
		w.be(till.RoleOwner, lang)
		page := w.get(w.path("/audit?who=all"))
		for _, text := range want {
			if !strings.Contains(page, text) {
				t.Errorf("%s: the log lacks %q", lang, text)
			}
		}
		if strings.Contains(page, "242****") || strings.Contains(page, "<b>payment.") {
			t.Errorf("%s: the log has a raw word", lang)
		}
		checkPage(t, lang, page)
	}
}

// write adds a row to the client's log.
func (w *world) write(action, detail string) {
	w.t.Helper()
	ctx := context.Background()
	err := w.store.Update(ctx, func(tx *store.Tx) error {
		heads, err := tx.LockHeads(ctx, []till.ID{w.client.ID})
		if err != nil {
			return err
		}
		h := heads[w.client.ID]
		row := &store.AuditRow{ClientID: w.client.ID, Sequence: h.NextAudit(), At: h.NextTime(), Actor: "person:" + till.NewID(1).String() + " Awa", Action: action, Detail: detail}
		if strings.HasPrefix(action, "payment.") {
			row.SubjectID = till.NewID(1)
		}
		if err := tx.InsertAudit(ctx, []*store.AuditRow{row}); err != nil {
			return err
		}
		return tx.SaveHeads(ctx, heads)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// Who takes another person's name is told apart by the end of the id.
func TestEqualNamesAreToldApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.write("role.set", "the owner's act") // by an Awa
	if page := w.get(w.path("/audit?who=all")); strings.Contains(page, "Awa (…") {
		t.Error("a name that one person has is shown with an id")
	}
	w.member(till.RoleViewer, "impostor@shop.example")
	err := w.store.Update(context.Background(), func(tx *store.Tx) error {
		p := w.visitor.Person
		p.Name = "AWA"
		return access.UpdateProfile(context.Background(), tx, &p)
	})
	if err != nil {
		t.Fatal(err)
	}
	w.be(till.RoleOwner, "en")
	if page := w.get(w.path("/audit?who=all")); !strings.Contains(page, "Awa (…") {
		t.Errorf("the log does not tell them apart")
	}
}
