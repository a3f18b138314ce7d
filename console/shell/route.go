package shell

import "till/people"

// Audience is who a route is for.
type Audience int

// The audiences.
const (
	Everyone Audience = iota // needs no session
	SignedIn                 // any person
	Staff                    // a role with the {client} of the path, or the house's right to view it
	House                    // a role of the house
)

// Route is one page or act of the console.
type Route struct {
	Method string // GET answers HEAD too
	Path   string // under Prefix, as http.ServeMux takes it
	For    Audience
	May    people.Permission // what the person must be allowed; Member: any role will do
	Fresh  bool              // the act needs fresh proof; see visit.checkProof

	// Stream is answered until the person leaves.
	Stream bool

	// TestOnly routes are 404 for live merchants.
	TestOnly bool

	// WhileSuspended says that an act works for a suspended merchant: it neither
	// moves money nor gives access. Pages to read always work.
	WhileSuspended bool

	Handle func(v *Visit) error
}

// What is answered outside of the table.
var (
	noRoute       = Route{Handle: func(*Visit) error { return ErrNoPage }}
	insecureRoute = Route{Handle: func(*Visit) error { return errInsecure }}
	foreignRoute  = Route{Handle: func(*Visit) error { return errForeign }}
)
