// Package seal encrypts secrets for the database with AES-GCM: webhook secrets and
// operators' access tokens. Each use has its own key, derived from the
// installation's secret. So the database alone reveals nothing, and bytes that were
// sealed for one use do not open in another.
//
// The secret has generations (Ring). The first byte of sealed bytes says which one sealed
// them, so that the secret can be rotated while everything stays open.
//
// Start reading at seal.go.
package seal
