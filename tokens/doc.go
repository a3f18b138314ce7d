// Package tokens caches operators' access tokens, encrypted in the database and
// refreshed by one instance at a time.
//
// Some operators keep only one token valid, or limit how many are issued. So an
// instance that finds no valid token takes a lease on the token's row by
// compare-and-swap, fetches a token, and stores it. Other instances poll the row.
// A lease expires by itself, so a dead instance delays the others by 40 s at most.
//
// Each instance also keeps tokens in memory. A call then needs no database read,
// and works while the database is unavailable, for as long as the token is valid.
// One caller refreshes a token before it expires while all others still use it.
//
// It does not know how a token is fetched: the adapter passes a function.
//
// Start reading at tokens.go.
package tokens
