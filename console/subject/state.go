package subject

import (
	"strings"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/store"
)

// PaymentChip returns a payment's state as people read it, and the reason that
// is beside it.
func PaymentChip(v *shell.Visit, p *store.PaymentRow) (shell.Chip, string) {
	t := v.Words.T
	reason := ""
	if p.FailureReason != "" {
		reason = Reason(v, p.FailureReason)
	}
	switch {
	case p.ReversedEvent != 0:
		return shell.Chip{Tone: "late", Icon: "undo", Text: t("state.reversed")}, ""
	case p.LateEvent != 0:
		return shell.Chip{Tone: "late", Icon: "undo", Text: t("state.late_success")}, ""
	case p.Attention && !p.Credited():
		return shell.Chip{Tone: "examine", Icon: "gem", Text: t("state.needs_attention")}, reason
	case p.Status == till.Success:
		return shell.Chip{Tone: "paid", Icon: "check", Text: t("state.success")}, ""
	case p.Status == till.Failed:
		return shell.Chip{Tone: "failed", Icon: "cross", Text: t("state.failed")}, reason
	case p.Status == till.Expired:
		return shell.Chip{Tone: "ended", Icon: "sand", Text: t("state.expired")}, reason
	case v.Now >= p.ExpiresAt || p.Resolution.State == till.Querying:
		return shell.Chip{Tone: "processing", Icon: "turn", Text: t("state.querying")}, ""
	case p.Status == till.Processing:
		return shell.Chip{Tone: "processing", Icon: "phone", Text: t("state.on_the_phone")}, ""
	}
	return shell.Chip{Tone: "pending", Icon: "clock", Text: t("state.pending")}, ""
}

// PayoutChip is paymentChip for a payout.
func PayoutChip(v *shell.Visit, p *store.PayoutRow) (shell.Chip, string) {
	t := v.Words.T
	reason := ""
	if p.FailureReason != "" {
		reason = Reason(v, p.FailureReason)
	}
	switch {
	case p.LateEvent != 0:
		return shell.Chip{Tone: "late", Icon: "undo", Text: t("state.late_payout")}, ""
	case p.Attention && !p.Status.Final():
		return shell.Chip{Tone: "examine", Icon: "gem", Text: t("state.needs_attention")}, reason
	case p.Status == till.PayoutSuccess:
		return shell.Chip{Tone: "paid", Icon: "check", Text: t("state.sent")}, ""
	case p.Status == till.PayoutFailed:
		return shell.Chip{Tone: "failed", Icon: "cross", Text: t("state.failed")}, reason
	case p.Status == till.PayoutCancelled:
		return shell.Chip{Tone: "ended", Icon: "bar", Text: t("state.cancelled")}, ""
	case p.Resolution.State == till.Querying:
		return shell.Chip{Tone: "processing", Icon: "turn", Text: t("state.querying")}, ""
	case p.Status == till.PayoutProcessing:
		return shell.Chip{Tone: "processing", Icon: "turn", Text: t("state.processing")}, ""
	}
	return shell.Chip{Tone: "pending", Icon: "clock", Text: t("state.pending")}, ""
}

// Reason returns a failure's reason in words. The list of reasons is open: one
// that has no words is shown as none given.
func Reason(v *shell.Visit, r till.FailureReason) string {
	if key := "reason." + string(r); v.Words.Has(key) {
		return v.Words.T(key)
	}
	return v.Words.T("reason.unspecified")
}

// CaseKind returns what a case is about, in words.
func CaseKind(v *shell.Visit, kind string) string {
	if key := "case." + kind; v.Words.Has(key) {
		return v.Words.T(key)
	}
	return v.Words.T("state.needs_attention")
}

// MaskPhone returns a phone as pages show it.
func MaskPhone(phone string) string { return look.Mask(phone) }

// ActWords returns an act in words. An act of an older release may have none; its code
// is in the row's details.
func ActWords(v *shell.Visit, act string) string {
	if v.Words.Has("act." + act) {
		return v.Words.T("act." + act)
	}
	if base, refused := strings.CutSuffix(act, ".refuse"); refused {
		return v.Words.T("audit.refused", "what", ActWords(v, base))
	}
	return v.Words.T("audit.other")
}

// StateWord returns the key of a status: money that came in was paid, and money
// that went out was sent.
func StateWord(kind, status string) string {
	if kind == "payouts" && status == string(till.PayoutSuccess) {
		return "sent"
	}
	return status
}
