// Package mpesa speaks to Safaricom's Daraja: M-Pesa Express (STK push) for
// payments and B2C for payouts.
package mpesa
