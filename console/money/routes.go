package money

import (
	"net/http"

	"till/console/shell"
	"till/people"
)

// Routes are the pages of this room, with who may.
var Routes = []shell.Route{
	{Method: http.MethodGet, Path: "/house/search", For: shell.House, May: people.ClientsLook, Handle: in((*visit).search)},
	{Method: http.MethodPost, Path: "/house/search", For: shell.House, May: people.ClientsLook, Handle: in((*visit).postSearch)},
	{Method: http.MethodGet, Path: "/c/{client}/payments", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).payments)},
	{Method: http.MethodGet, Path: "/c/{client}/payments.csv", For: shell.Staff, May: people.Export, Handle: in((*visit).paymentsCSV)},
	{Method: http.MethodGet, Path: "/c/{client}/payouts.csv", For: shell.Staff, May: people.WalletsSee, Handle: in((*visit).payoutsCSV)},
	{Method: http.MethodGet, Path: "/c/{client}/payments/export", For: shell.Staff, May: people.ExportPhones, Handle: in((*visit).paymentsExport)},
	{Method: http.MethodPost, Path: "/c/{client}/payments/export", For: shell.Staff, May: people.ExportPhones, Fresh: true, WhileSuspended: true, Handle: in((*visit).paymentsExport)},
	{Method: http.MethodGet, Path: "/c/{client}/payouts/export", For: shell.Staff, May: people.ExportPhones, Handle: in((*visit).payoutsExport)},
	{Method: http.MethodPost, Path: "/c/{client}/payouts/export", For: shell.Staff, May: people.ExportPhones, Fresh: true, WhileSuspended: true, Handle: in((*visit).payoutsExport)},
	{Method: http.MethodGet, Path: "/c/{client}/payments/{id}", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).payment)},
	{Method: http.MethodGet, Path: "/c/{client}/payments/{id}/note", For: shell.Staff, May: people.NotesWrite, Handle: in((*visit).paymentNote)},
	{Method: http.MethodPost, Path: "/c/{client}/payments/{id}/note", For: shell.Staff, May: people.NotesWrite, WhileSuspended: true, Handle: in((*visit).paymentNote)},
	{Method: http.MethodGet, Path: "/c/{client}/payouts/{id}/note", For: shell.Staff, May: people.NotesWrite, Handle: in((*visit).payoutNote)},
	{Method: http.MethodPost, Path: "/c/{client}/payouts/{id}/note", For: shell.Staff, May: people.NotesWrite, WhileSuspended: true, Handle: in((*visit).payoutNote)},
	{Method: http.MethodGet, Path: "/c/{client}/payouts", For: shell.Staff, May: people.WalletsSee, Handle: in((*visit).payouts)},
	{Method: http.MethodGet, Path: "/c/{client}/payouts/{id}", For: shell.Staff, May: people.WalletsSee, Handle: in((*visit).payout)},
	{Method: http.MethodGet, Path: "/c/{client}/payments/{id}/refund", For: shell.Staff, May: people.RefundsApprove, Handle: in((*visit).refund)},
	{Method: http.MethodPost, Path: "/c/{client}/payments/{id}/refund", For: shell.Staff, May: people.RefundsApprove, Fresh: true, Handle: in((*visit).refund)},
	{Method: http.MethodGet, Path: "/c/{client}/refunds", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).refunds)},
	{Method: http.MethodGet, Path: "/c/{client}/refunds.csv", For: shell.Staff, May: people.Export, Handle: in((*visit).refundsCSV)},
	{Method: http.MethodGet, Path: "/c/{client}/refunds/export", For: shell.Staff, May: people.ExportPhones, Handle: in((*visit).refundsExport)},
	{Method: http.MethodPost, Path: "/c/{client}/refunds/export", For: shell.Staff, May: people.ExportPhones, Fresh: true, WhileSuspended: true, Handle: in((*visit).refundsExport)},
	{Method: http.MethodGet, Path: "/c/{client}/refunds/{id}", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).shownRefund)},
	{Method: http.MethodGet, Path: "/c/{client}/refunds/{id}/note", For: shell.Staff, May: people.NotesWrite, Handle: in((*visit).refundNote)},
	{Method: http.MethodPost, Path: "/c/{client}/refunds/{id}/note", For: shell.Staff, May: people.NotesWrite, WhileSuspended: true, Handle: in((*visit).refundNote)},
	{Method: http.MethodPost, Path: "/c/{client}/refunds/{id}/phone", For: shell.Staff, May: people.PhonesSee, WhileSuspended: true, Handle: in((*visit).revealRefund)},
	{Method: http.MethodGet, Path: "/c/{client}/wallets", For: shell.Staff, May: people.WalletsSee, Handle: in((*visit).wallets)},
	{Method: http.MethodGet, Path: "/c/{client}/wallets/{currency}", For: shell.Staff, May: people.WalletsSee, Handle: in((*visit).statement)},
	{Method: http.MethodGet, Path: "/c/{client}/wallets/{currency}/statement.csv", For: shell.Staff, May: people.WalletsSee, Handle: in((*visit).statementCSV)},
	{Method: http.MethodPost, Path: "/c/{client}/search", For: shell.Staff, May: people.PaymentsSee, WhileSuspended: true, Handle: in((*visit).postSearch)},
	{Method: http.MethodGet, Path: "/c/{client}/search", For: shell.Staff, May: people.PaymentsSee, Handle: in((*visit).search)},
	{Method: http.MethodPost, Path: "/c/{client}/payments/{id}/phone", For: shell.Staff, May: people.PhonesSee, WhileSuspended: true, Handle: in((*visit).revealPayment)},
	{Method: http.MethodPost, Path: "/c/{client}/payouts/{id}/phone", For: shell.Staff, May: people.PhonesSee, WhileSuspended: true, Handle: in((*visit).revealPayout)},
}
