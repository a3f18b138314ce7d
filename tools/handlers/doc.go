// Package handlers holds small shops that receive webhooks through the SDKs, one for each
// framework that the guides name, and tests each with till webhook check.
package handlers
