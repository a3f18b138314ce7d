// Package look turns amounts, times and phones into text for people, by
// language and zone. It knows no page and no database. Amounts are int64 minor
// units from end to end; there is no float here.
//
// Start reading at money.go.
package look
