package store

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"
)

// elementTypes are the types of the arrays' elements.
var elementTypes = map[uint32]uint32{pgtype.ByteaArrayOID: pgtype.ByteaOID, pgtype.TextArrayOID: pgtype.TextOID, pgtype.Int8ArrayOID: pgtype.Int8OID}

// pgColumn is one argument of every row, which is sent as an array in the
// server's binary form. pgx would find out about each element by reflection, for
// a batch of creates some hundred times.
type pgColumn struct {
	rows [][]any
	i    int
}

// pgNumbers is the array of 1 to n.
type pgNumbers int

// appendValue appends a value in the server's binary form, behind its length,
// and reports whether it is of that type.
func appendValue(a []byte, oid uint32, value any) ([]byte, bool) {
	switch v := value.(type) {
	case nil:
		return appendNull(a), true
	case []byte:
		if v == nil {
			return appendNull(a), true
		}
		return append(binary.BigEndian.AppendUint32(a, uint32(len(v))), v...), oid == pgtype.ByteaOID
	case string:
		return append(binary.BigEndian.AppendUint32(a, uint32(len(v))), v...), oid == pgtype.TextOID
	case int64:
		return appendInt(a, v), oid == pgtype.Int8OID
	case int:
		return appendInt(a, int64(v)), oid == pgtype.Int8OID
	case bool:
		n := int64(0)
		if v {
			n = 1
		}
		return appendInt(a, n), oid == pgtype.Int8OID
	}
	return a, false
}

func appendHead(a []byte, element uint32, n int) []byte {
	a = binary.BigEndian.AppendUint32(a, 1) // dimensions
	a = binary.BigEndian.AppendUint32(a, 1) // there may be nulls
	a = binary.BigEndian.AppendUint32(a, element)
	a = binary.BigEndian.AppendUint32(a, uint32(n))
	return binary.BigEndian.AppendUint32(a, 1) // the first has the number 1
}

func appendNull(a []byte) []byte { return binary.BigEndian.AppendUint32(a, 0xffffffff) }

func appendInt(a []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(a, 8), uint64(n))
}

// arrayCodec sends columns; whatever else comes is pgx's business.
type arrayCodec struct{ pgtype.Codec }

// PlanEncode implements pgtype.Codec.
func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	switch value.(type) {
	case pgColumn, pgNumbers:
		if format != pgtype.BinaryFormatCode {
			return nil
		}
		return arrayPlan(elementTypes[oid])
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

// arrayPlan is the type of an array's elements.
type arrayPlan uint32

// Encode implements pgtype.EncodePlan. A nil argument becomes null.
func (element arrayPlan) Encode(value any, a []byte) ([]byte, error) {
	if n, ok := value.(pgNumbers); ok {
		a = appendHead(a, uint32(element), int(n))
		for i := range int64(n) {
			a = appendInt(a, i+1)
		}
		return a, nil
	}
	c := value.(pgColumn)
	a = appendHead(a, uint32(element), len(c.rows))
	ok := false
	for _, r := range c.rows {
		if a, ok = appendValue(a, uint32(element), r[c.i]); !ok {
			return nil, fmt.Errorf("argument %d is a %T", c.i+1, r[c.i])
		}
	}
	return a, nil
}

// takeArrays tells a connection how columns are sent.
func takeArrays(m *pgtype.Map) {
	for oid := range elementTypes {
		if t, ok := m.TypeForOID(oid); ok {
			m.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: arrayCodec{t.Codec}})
		}
	}
}
