// Package qrcode draws QR codes: as SVG for pages, as blocks for a terminal.
package qrcode
