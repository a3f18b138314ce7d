package trace

import "google.golang.org/protobuf/encoding/protowire"

// The fields of OTLP's messages (opentelemetry/proto/trace/v1/trace.proto and its
// neighbours). A test in tools decodes what is written here with the official types.
const (
	requestResourceSpans = 1

	resourceSpansResource = 1
	resourceSpansScopes   = 2
	resourceAttributes    = 1

	scopeSpansScope = 1
	scopeSpansSpans = 2
	scopeName       = 1

	spanTraceID    = 1
	spanSpanID     = 2
	spanParentID   = 4
	spanName       = 5
	spanKind       = 6
	spanStart      = 7
	spanEnd        = 8
	spanAttributes = 9
	spanLinks      = 13
	spanStatus     = 15
	spanFlags      = 16

	linkTraceID = 1
	linkSpanID  = 2

	statusCode  = 3
	statusError = 2

	keyValueKey   = 1
	keyValueValue = 2
	anyString     = 1
	anyInt        = 3
)

// The flags of W3C Trace Context, level 2.
const (
	flagSampled = 1
	flagRandom  = 2
)

// scope names the part of a program that a span comes from.
const scope = "till"

// encode returns an ExportTraceServiceRequest with the spans.
func encode(resource []Attribute, spans []Span) []byte {
	return message(nil, requestResourceSpans, func(b []byte) []byte {
		b = message(b, resourceSpansResource, func(b []byte) []byte {
			return appendAttributes(b, resourceAttributes, resource)
		})
		return message(b, resourceSpansScopes, func(b []byte) []byte {
			b = message(b, scopeSpansScope, func(b []byte) []byte { return appendText(b, scopeName, scope) })
			for i := range spans {
				b = message(b, scopeSpansSpans, func(b []byte) []byte { return appendSpan(b, &spans[i]) })
			}
			return b
		})
	})
}

// message appends a nested message.
func message(b []byte, field protowire.Number, write func(b []byte) []byte) []byte {
	return appendBytes(b, field, write(nil))
}

func appendSpan(b []byte, s *Span) []byte {
	b = appendBytes(b, spanTraceID, s.Trace[:])
	b = appendBytes(b, spanSpanID, s.ID[:])
	if s.Parent != (SpanID{}) {
		b = appendBytes(b, spanParentID, s.Parent[:])
	}
	b = appendText(b, spanName, s.Name)
	b = appendNumber(b, spanKind, uint64(max(s.Kind, Internal)))
	b = appendTime(b, spanStart, s.Start.Std().UnixNano())
	b = appendTime(b, spanEnd, max(s.Start, s.End).Std().UnixNano())
	b = appendAttributes(b, spanAttributes, s.attributes[:s.n])
	if s.Link != (Link{}) {
		b = message(b, spanLinks, func(b []byte) []byte {
			b = appendBytes(b, linkTraceID, s.Link.Trace[:])
			return appendBytes(b, linkSpanID, s.Link.Span[:])
		})
	}
	if s.Failed {
		b = message(b, spanStatus, func(b []byte) []byte { return appendNumber(b, statusCode, statusError) })
	}
	b = protowire.AppendTag(b, spanFlags, protowire.Fixed32Type)
	return protowire.AppendFixed32(b, flagSampled|flagRandom)
}

func appendAttributes(b []byte, field protowire.Number, all []Attribute) []byte {
	for i := range all {
		a := &all[i]
		b = message(b, field, func(b []byte) []byte {
			b = appendText(b, keyValueKey, a.Key)
			return message(b, keyValueValue, func(b []byte) []byte {
				if a.number {
					return appendNumber(b, anyInt, uint64(a.Number))
				}
				return appendText(b, anyString, a.Text)
			})
		})
	}
	return b
}

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

func appendText(b []byte, field protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), value)
}

func appendNumber(b []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
}

func appendTime(b []byte, field protowire.Number, nanoseconds int64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(max(nanoseconds, 0)))
}

// rejected reads how many spans the collector has not taken from an
// ExportTraceServiceResponse; 0 if it says nothing.
func rejected(answer []byte) int64 {
	partial, _ := firstField(answer) // partial_success
	_, spans := firstField(partial)  // rejected_spans
	return int64(spans)
}

// firstField returns the value of a message's field 1, as bytes or as a number.
func firstField(b []byte) (value []byte, number uint64) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(field, kind, b); n < 0 {
			break
		}
		switch {
		case field == 1 && kind == protowire.BytesType:
			value, _ = protowire.ConsumeBytes(b)
		case field == 1 && kind == protowire.VarintType:
			number, _ = protowire.ConsumeVarint(b)
		}
		b = b[n:]
	}
	return value, number
}
