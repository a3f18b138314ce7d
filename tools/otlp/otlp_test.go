// Package otlp decodes the spans that Till sends with OpenTelemetry's own types.
package otlp

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	v1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"till"
	"till/internal/trace"
)

// attributes returns texts and numbers by key.
func attributes(all []*common.KeyValue) map[string]any {
	out := map[string]any{}
	for _, a := range all {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			out[a.GetKey()] = v.IntValue
		}
	}
	return out
}

func TestTheOfficialTypesReadWhatIsSent(t *testing.T) {
	t.Parallel()
	var got v1.TracesData // the same fields as ExportTraceServiceRequest, whose package links gRPC
	requests := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("X-Team") != "pay ments" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Error(err)
		}
		if err := (proto.UnmarshalOptions{}).Unmarshal(b, &got); err != nil {
			t.Error(err)
		}
		w.Write([]byte{0x0a, 2, 0x08, 1}) // ExportTraceServiceResponse.partial_success.rejected_spans = 1
	}))
	defer web.Close()
	c, err := trace.FromEnvironment(web.URL, 1, func(name string) string {
		return map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "host.name=a%20b", "OTEL_EXPORTER_OTLP_HEADERS": "x-team=pay%20ments"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	dropped := 0
	c.Dropped = func(n int) { dropped += n }
	tracer := trace.New(c)

	at := till.Time(1_794_000_000_123_456)
	id := till.NewID(at)
	root := trace.Span{Trace: id, ID: trace.RootID(id), Name: "payment", Start: at, End: at.Add(1_500_000_000)}
	root.Text("till.status", "success")
	tracer.Record(&root)
	call := trace.Child(id, "submit", trace.Client)
	call.Start, call.End, call.Failed = at, at-5, true // the clock was set back
	call.Link = trace.Link{Trace: till.ID{1, 2}, Span: trace.SpanID{3, 4}}
	call.Text("till.connection", strings.Repeat("é", 200))
	call.Int("till.attempt", 3)
	call.Int("till.wait_us", -1)
	call.Text("till.code", "")
	tracer.Record(&call)
	tracer.Close()

	if requests != 1 || dropped != 1 || len(got.GetResourceSpans()) != 1 || len(got.GetResourceSpans()[0].GetScopeSpans()) != 1 {
		t.Fatalf("%d requests, %d rejected: %v", requests, dropped, &got)
	}
	if len(got.ProtoReflect().GetUnknown()) > 0 {
		t.Error("there are unknown fields")
	}
	of := got.GetResourceSpans()[0]
	if a := attributes(of.GetResource().GetAttributes()); a["service.name"] != "till" || a["host.name"] != "a b" {
		t.Errorf("the resource is %v", a)
	}
	spans := of.GetScopeSpans()[0].GetSpans()
	if len(spans) != 2 || of.GetScopeSpans()[0].GetScope().GetName() != "till" {
		t.Fatalf("%v", of)
	}
	hexRoot := hex.EncodeToString(spans[0].GetSpanId())
	rootID := trace.RootID(id)
	if s := spans[0]; hex.EncodeToString(s.GetTraceId()) != strings.ReplaceAll(id.String(), "-", "") || hexRoot != hex.EncodeToString(rootID[:]) || len(s.GetParentSpanId()) != 0 ||
		s.GetName() != "payment" || s.GetKind() != v1.Span_SPAN_KIND_INTERNAL || s.GetStartTimeUnixNano() != uint64(at)*1000 || s.GetEndTimeUnixNano()-s.GetStartTimeUnixNano() != 1_500_000_000 ||
		s.GetFlags() != 3 || s.GetStatus().GetCode() != v1.Status_STATUS_CODE_UNSET || attributes(s.GetAttributes())["till.status"] != "success" || len(s.GetLinks()) != 0 {
		t.Errorf("the root span is %v", s)
	}
	s := spans[1]
	a := attributes(s.GetAttributes())
	if hex.EncodeToString(s.GetParentSpanId()) != hexRoot || len(s.GetSpanId()) != 8 || s.GetKind() != v1.Span_SPAN_KIND_CLIENT || s.GetEndTimeUnixNano() != s.GetStartTimeUnixNano() ||
		s.GetStatus().GetCode() != v1.Status_STATUS_CODE_ERROR || len(a) != 3 || a["till.attempt"] != int64(3) || a["till.wait_us"] != int64(-1) || a["till.connection"] != strings.Repeat("é", 200) {
		t.Errorf("the call's span is %v", s)
	}
	if l := s.GetLinks(); len(l) != 1 || len(l[0].GetTraceId()) != 16 || l[0].GetTraceId()[1] != 2 || len(l[0].GetSpanId()) != 8 || l[0].GetSpanId()[1] != 4 {
		t.Errorf("its links are %v", l)
	}
	for _, s := range spans {
		if len(s.ProtoReflect().GetUnknown()) > 0 {
			t.Error("a span has unknown fields")
		}
	}
}
