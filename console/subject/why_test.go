package subject

import (
	"strings"
	"testing"
	"time"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/console/words"
	"till/store"
	"till/story"
)

// Every sentence, in both languages, as people read it.
func TestEverySentence(t *testing.T) {
	t.Parallel()
	now := till.TimeOf(time.Date(2026, 11, 14, 13, 2, 42, 0, time.UTC))
	at, until, then := now.Add(-31*time.Second), now.Add(268*time.Second), now.Add(13*time.Second)
	xaf := func(n int64) till.Money { return till.Money{Minor: n, Currency: "XAF"} }
	w := story.Why{Operator: "mtn-congo", At: at, Until: until, Then: then, Span: 3*time.Hour + 5*time.Minute, Amount: xaf(4925), Other: xaf(75), Reason: till.WrongPIN, Status: "expired", Rate: 5}
	want := map[story.WhyCode][2]string{
		story.WhyUnsentStopped: {"Not sent yet: MTN MoMo has not answered since 14:02:11. Tried again at 14:02:55; if not sent by 14:07:10 it fails and nobody is charged.",
			"Pas encore envoyé : MTN MoMo ne répond plus depuis 14:02:11. Nouvel essai à 14:02:55 ; sans envoi avant 14:07:10, échec et personne n’est débité."},
		story.WhyUnsentTurn: {"Waits its turn: MTN MoMo takes 5 a second.", "En file d’attente : MTN MoMo accepte 5 demandes par seconde."},
		story.WhyUnsent: {"Not sent yet. It goes out in a moment; if not sent by 14:07:10 it fails and nobody is charged.",
			"Pas encore envoyé. L’envoi part dans un instant ; sans envoi avant 14:07:10, échec et personne n’est débité."},
		story.WhyHeld: {"Held back since 14:02:11, and not sent. It goes out when whoever runs this service lets it go.",
			"Retenu depuis 14:02:11, et pas envoyé. L’envoi part quand la maison le libère."},
		story.WhyUnsure: {"Sent at 14:02:11; MTN MoMo did not confirm. We are asking. It may have reached the customer.",
			"Envoyé à 14:02:11 ; MTN MoMo n’a pas confirmé. Nous vérifions. Le client l’a peut-être reçu."},
		story.WhyWaiting: {"On the customer's phone since 14:02:11. They have until 14:07:10.", "Sur le téléphone du client depuis 14:02:11. Il a jusqu’à 14:07:10."},
		story.WhyOver: {"The customer's time is over; MTN MoMo has not said how it ended. Not failed: they may have paid.",
			"Le délai du client est passé ; MTN MoMo n’a pas encore donné l’issue. Pas un échec : il a peut-être payé."},
		story.WhyAttention: {"MTN MoMo has not decided for 3 h 5 min. On the list since 14:02:11; still asked, next 14:02:55.",
			"MTN MoMo n’a pas tranché depuis 3 h 5 min. Signalé depuis 14:02:11 ; nouvelle question à 14:02:55."},
		story.WhyMismatch:     {"MTN MoMo reports 4,925 XAF, asked 75 XAF. Put aside; a person decides.", "MTN MoMo annonce 4 925 XAF pour 75 XAF demandés. Mis en attente ; une personne décide."},
		story.WhyPaid:         {"Paid at 14:02:11. 4,925 XAF credited to your wallet (75 XAF fee).", "Payé à 14:02:11. 4 925 XAF crédités sur votre portefeuille (frais 75 XAF)."},
		story.WhyPaidFree:     {"Paid at 14:02:11. 4,925 XAF credited to your wallet.", "Payé à 14:02:11. 4 925 XAF crédités sur votre portefeuille."},
		story.WhyFailed:       {"Wrong PIN. MTN MoMo says that no money moved.", "Code PIN erroné. Selon MTN MoMo, aucun débit."},
		story.WhyFailedUnsent: {"Wrong PIN. Nobody was charged.", "Code PIN erroné. Personne n’a été débité."},
		story.WhyExpired:      {"The customer did not answer in time. Nobody was charged, as far as MTN MoMo says.", "Le client n’a pas répondu à temps. Aucun débit selon MTN MoMo."},
		story.WhyLate:         {"Ended as Expired, but the money came at 14:02:11. Your wallet is credited.", "Terminé comme Expiré, mais l’argent est arrivé à 14:02:11. Votre portefeuille est crédité."},
		story.WhyReversed:     {"Paid, then MTN MoMo took it back at 14:02:11. Debited 4,925 XAF, 75 XAF owed.", "Payé, puis repris par MTN MoMo à 14:02:11. Débité 4 925 XAF, reste dû 75 XAF."},
		story.WhyRefunding:    {"Paid. 4,925 XAF is on the way back to the customer since 14:02:11.", "Payé. 4 925 XAF en cours de remboursement au client depuis 14:02:11."},
		story.WhyRefunded:     {"Paid, then given back in full: 4,925 XAF reached the customer at 14:02:11.", "Payé, puis remboursé en entier : 4 925 XAF rendus au client à 14:02:11."},
		story.WhyRefundedPart: {"Paid. 4,925 XAF went back to the customer at 14:02:11; 75 XAF is left.", "Payé. 4 925 XAF rendus au client à 14:02:11 ; il reste 75 XAF."},
		story.WhyRefundUnknown: {"4,925 XAF may have gone back to the customer; MTN MoMo has not confirmed it. Do not pay this person another way.",
			"4 925 XAF ont peut-être été rendus au client ; MTN MoMo ne l’a pas confirmé. Ne payez pas cette personne autrement."},
		story.WhyRefundReversed: {"MTN MoMo took this payment back at 14:02:11, and 4,925 XAF of it went back to the customer or is on the way. A person looks at it.",
			"MTN MoMo a repris ce paiement à 14:02:11, et 4 925 XAF ont été rendus au client ou sont en route. Une personne s’en occupe."},
		story.WhyPayoutUnsent:    {"4,925 XAF is reserved in your wallet. It is sent in a moment.", "4 925 XAF est réservé dans votre portefeuille. L’envoi part dans un instant."},
		story.WhyPayoutUnknown:   {"4,925 XAF stays reserved. Do not pay this person another way.", "4 925 XAF reste réservé. Ne payez pas cette personne autrement."},
		story.WhyPayoutPaid:      {"Sent at 14:02:11. 4,925 XAF debited from your wallet, fee included.", "Versé à 14:02:11. 4 925 XAF débités de votre portefeuille, frais compris."},
		story.WhyPayoutFailed:    {"Wrong PIN. Nothing was paid; 4,925 XAF is available again.", "Code PIN erroné. Rien n’a été versé ; 4 925 XAF est de nouveau disponible."},
		story.WhyPayoutCancelled: {"Cancelled at 14:02:11 before anything was sent. 4,925 XAF is available again.", "Annulé à 14:02:11 avant tout envoi. 4 925 XAF est de nouveau disponible."},
		story.WhyPayoutLate:      {"It had ended unpaid, but MTN MoMo paid it at 14:02:11. Your wallet is debited.", "Terminé sans versement, mais MTN MoMo l’a versé à 14:02:11. Votre portefeuille est débité."},
	}
	plain := strings.NewReplacer("\u00a0", " ", "\u202f", " ")
	for _, code := range story.WhyCodes {
		for i, lang := range words.Languages {
			v := &shell.Visit{Words: words.For(lang), Clock: look.NewClock(lang, "Africa/Brazzaville"), Now: now}
			w.Code = code
			history := &story.Story{Kind: till.SubjectPayment, Subject: store.Subject{Method: "mtn_momo"}}
			if got := plain.Replace(GoingOf(v, history, w, "").Say); got != want[code][i] {
				t.Errorf("%s in %s:\n got %s\nwant %s", code, lang, got, want[code][i])
			}
		}
	}
}
