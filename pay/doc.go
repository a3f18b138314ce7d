// Package pay serves the pages on which customers pay. A page is one answer of a few KB: no
// script, no cookie, no picture, no request besides. It works on a small telephone, in Opera
// Mini and in a text browser, in English and French.
//
// GET shows and POST acts: chats and scanners open addresses before people do. What a page
// shows is decided in checkout/face.go; here it gets its words. Every sentence is about
// somebody's money and is true whenever it is shown: a page never says that nothing was taken
// while something may come, and never offers to ask again then.
//
// A whole number is shown only in the form that it was typed into. Who may see a receipt knows
// the ask's own address, which its payer was sent to.
//
// Start reading at pay.go.
package pay
