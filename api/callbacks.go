package api

import (
	"io"
	"net/http"

	"till"
	"till/internal/jsonx"
)

// receiveCallback is what operators call. The token in the path says which
// payment or payout is meant; the body is read and not believed, because only a status
// read is the operator's word. The wake is committed before the answer: after
// a 200 the operator forgets, and we must not.
func (c *call) receiveCallback() error {
	wake := c.s.Collector.Wake
	ref, ok := c.s.Collector.OpenCallback(c.r.PathValue("connection"), c.r.PathValue("token"))
	if !ok {
		wake = c.s.Payouts.Wake
		ref, ok = c.s.Payouts.OpenCallback(c.r.PathValue("connection"), c.r.PathValue("token"))
	}
	if !ok {
		return errNoPath
	}
	if c.r.ContentLength > jsonx.MaxBody {
		return c.cut(&till.Error{Code: till.CodeBodyTooLarge})
	}
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(c.ResponseWriter, c.r.Body, jsonx.MaxBody)); err != nil {
		return c.cut(readError(err))
	}
	if err := wake(c.r.Context(), ref); err != nil {
		c.s.Log.Warn("a callback was not recorded", "request_id", c.id, "subject", ref.ID.String(), "error", err)
		return &till.Error{Code: till.CodeServiceUnavailable}
	}
	return c.json(http.StatusOK, append(c.buf(), "{}"...))
}
