package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"
)

// pgx would look at each element of an array by reflection: for a batch of
// creates, several hundred times. array and rowNumbers encode themselves.

// array is one argument of every row.
type array struct {
	rows [][]any
	i    int // the argument
}

// GoString keeps arguments out of pgx's errors.
func (a array) GoString() string { return "array" }

// rowNumbers is the array of 1 to n.
type rowNumbers int

// arrayCodec encodes these two for one array type; pgx encodes the rest.
type arrayCodec struct {
	pgtype.Codec
	element uint32 // type of the elements
}

// PlanEncode implements pgtype.Codec.
func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	switch value.(type) {
	case array, rowNumbers:
		if format != pgtype.BinaryFormatCode {
			return nil
		}
		return arrayPlan{c.element}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

type arrayPlan struct{ element uint32 }

// Encode implements pgtype.EncodePlan.
func (p arrayPlan) Encode(value any, buf []byte) ([]byte, error) {
	switch v := value.(type) {
	case rowNumbers:
		buf = p.appendHeader(buf, int(v))
		for i := range int(v) {
			buf = appendInt(buf, int64(i)+1)
		}
	case array:
		buf = p.appendHeader(buf, len(v.rows))
		ok := false
		for _, r := range v.rows {
			if buf, ok = p.appendValue(buf, r[v.i]); !ok {
				return nil, fmt.Errorf("argument %d is a %T", v.i+1, r[v.i])
			}
		}
	}
	return buf, nil
}

func (p arrayPlan) appendHeader(buf []byte, n int) []byte {
	buf = binary.BigEndian.AppendUint32(buf, 1) // dimensions
	buf = binary.BigEndian.AppendUint32(buf, 1) // there may be nulls
	buf = binary.BigEndian.AppendUint32(buf, p.element)
	buf = binary.BigEndian.AppendUint32(buf, uint32(n))
	return binary.BigEndian.AppendUint32(buf, 1) // the first index
}

// appendValue appends a value behind its length, and reports whether it is of
// the elements' type.
func (p arrayPlan) appendValue(buf []byte, value any) ([]byte, bool) {
	switch v := value.(type) {
	case nil:
		return binary.BigEndian.AppendUint32(buf, nullLength), true
	case []byte:
		if v == nil {
			return binary.BigEndian.AppendUint32(buf, nullLength), true
		}
		return append(binary.BigEndian.AppendUint32(buf, uint32(len(v))), v...), p.element == pgtype.ByteaOID
	case string:
		return append(binary.BigEndian.AppendUint32(buf, uint32(len(v))), v...), p.element == pgtype.TextOID
	case int64:
		return appendInt(buf, v), p.element == pgtype.Int8OID
	case int:
		return appendInt(buf, int64(v)), p.element == pgtype.Int8OID
	case bool:
		return appendInt(buf, intOf(v)), p.element == pgtype.Int8OID
	}
	return buf, false
}

const nullLength = 0xffffffff

func appendInt(buf []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(buf, 8), uint64(n))
}

func intOf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// registerArrays makes a connection encode array and rowNumbers.
func registerArrays(m *pgtype.Map) {
	for oid, element := range map[uint32]uint32{
		pgtype.ByteaArrayOID: pgtype.ByteaOID, pgtype.TextArrayOID: pgtype.TextOID, pgtype.Int8ArrayOID: pgtype.Int8OID,
	} {
		if t, ok := m.TypeForOID(oid); ok {
			m.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: arrayCodec{t.Codec, element}})
		}
	}
}
