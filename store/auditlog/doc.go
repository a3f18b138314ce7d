// Package auditlog reads who did what: the audit logs of clients, the chains of hashes that
// prove them, and the notes that people leave at payments.
//
// Its functions run in a transaction of store, which itself appends the rows (InsertAudit):
// each belongs to the commit of what it tells.
package auditlog
