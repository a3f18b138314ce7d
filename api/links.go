package api

import (
	"net/http"

	"till"
	"till/checkout"
	"till/engine"
	"till/store"
	"till/store/checkouts"
)

// linkHandlers answer about addresses that anybody can pay on.
type linkHandlers struct{ *exchange }

func onLinks(handle func(linkHandlers) error) func(*exchange) error {
	return func(c *exchange) error { return handle(linkHandlers{c}) }
}

// createLink is POST /links: one commit.
func (c linkHandlers) createLink() error {
	var req checkout.LinkRequest
	unknown, err := c.decodeKnown(&req)
	if err != nil {
		return err
	}
	req.Unknown = unknown
	who := engine.Client{Client: c.session.Client, Enabled: c.session.Enabled, Actor: c.session.Actor(), Full: c.checkTestQuota(), Caller: c.caller}
	created, err := c.s.Checkouts.CreateLink(c.auditContext(), who, &req)
	if err != nil {
		return err
	}
	c.subject = created.Link.ID
	h := c.Header()
	h["Location"] = []string{c.s.BaseURL + "/links/" + created.Link.ID.String()}
	if created.Replayed {
		h["Idempotent-Replayed"] = replayed
	}
	return c.link(http.StatusCreated, created.Link)
}

// linkRef returns the client's link in the path. A malformed id is answered like an unknown one.
func (c linkHandlers) linkRef() (store.Ref, error) {
	id, err := till.ParseID(c.r.PathValue("link_id"))
	if err != nil {
		return store.Ref{}, &till.Error{Code: till.CodeLinkNotFound}
	}
	c.subject = id
	return store.Ref{Client: c.session.Client.ID, ID: id}, nil
}

// getLink is GET /links/{link_id}.
func (c linkHandlers) getLink() error {
	ref, err := c.linkRef()
	if err != nil {
		return err
	}
	l, err := c.s.Checkouts.Link(c.r.Context(), ref)
	if err != nil {
		return err
	}
	return c.link(http.StatusOK, l)
}

// changeLink is PATCH /links/{link_id}.
func (c linkHandlers) changeLink() error {
	ref, err := c.linkRef()
	if err != nil {
		return err
	}
	var req checkout.LinkPatch
	if err := c.decode(&req); err != nil {
		return err
	}
	change, err := req.Change()
	if err != nil {
		return err
	}
	l, err := c.s.Checkouts.ChangeLink(c.auditContext(), ref, change, c.session.Actor())
	if err != nil {
		return err
	}
	return c.link(http.StatusOK, l)
}

func (c linkHandlers) link(status int, l *till.Link) error {
	return c.json(status, l.AppendJSON(c.buffer(), c.s.Checkouts.LinkURL(l)))
}

var linkQuery = []string{"active", "from_date", "to_date", "limit", "offset", "order"}

// listLinks is GET /links.
func (c linkHandlers) listLinks() error {
	p := c.params()
	f := checkouts.LinkFilter{From: p.time("from_date"), To: p.time("to_date")}
	if s := p.choice("active", "true", "false"); s != "" {
		on := s == "true"
		f.Active = &on
	}
	page := p.page()
	if err := p.err(); err != nil {
		return err
	}
	all, total, err := c.s.Checkouts.Links(c.r.Context(), c.session.Client.ID, f, page)
	if err != nil {
		return err
	}
	b := appendItems(c.buffer(), all, func(b []byte, l *till.Link) []byte { return l.AppendJSON(b, c.s.Checkouts.LinkURL(l)) })
	return c.json(http.StatusOK, appendPage(b, total, page.Limit, page.Offset))
}
