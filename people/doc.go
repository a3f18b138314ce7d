// Package people knows who may use the console, and what each may do there.
//
// It promises:
//
//   - A secret is never kept as it is: sessions, invitations and recovery codes
//     as SHA-256, passwords as Argon2id, TOTP secrets sealed.
//   - A link is shown by a read and spent by a write, once.
//   - A change of a password, a factor or a role ends the person's sessions, on
//     all instances, before the next request.
//   - Limits on guessing are in the database, so they hold over all instances.
//   - Each act and each refusal has an audit row: in the log of the client it is
//     about, or in the installation's (till.House).
//
// It knows no HTTP and no page. The package console calls it, and so do the
// commands of till person.
//
// Start reading at role.go, which has the table of what each role may, then at
// session.go.
package people
