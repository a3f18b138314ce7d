// Package reference serves the pages for developers at /docs/: quick starts, the
// calls of the API, its errors, guides, and a list of all names, in English and
// French. It renders them on first use from the OpenAPI document and from package
// docs. The pages need no script and load nothing from elsewhere: the usual viewers of
// OpenAPI weigh up to 1.3 MB, report home, and ask for a key in a browser. There is no
// "try it" on purpose. Every block of code is run by a test.
//
// Start reading at site.go. document.go reads the OpenAPI document, call.go makes
// the pages of calls, prose.go their texts in French, errors.go those of errors,
// guide.go those of Markdown.
package reference
