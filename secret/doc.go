// Package secret keeps the installation's secret: the file with its generations, the ring
// of keys that is made of it, and the rotation from one generation to the next.
//
// It promises:
//
//   - A database is used only with the secret that it was created with.
//   - A missing file is never replaced, because references derive from what was in it.
//   - No error quotes the file.
//   - What is sealed by a generation that is not in use any more is sealed anew.
//
// Start reading at secret.go.
package secret
