package store

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"
)

// arrayTypes are the types that arguments have.
var arrayTypes = map[uint32]string{pgtype.ByteaOID: "bytea[]", pgtype.TextOID: "text[]", pgtype.Int8OID: "bigint[]"}

// pgArray is an array in the server's binary form. pgx would find out about
// each element by reflection, for a batch of creates some hundred times.
type pgArray []byte

// newArray gathers one argument of every row; nil becomes null.
func newArray(oid uint32, rows [][]any, i int) (pgArray, error) {
	a := arrayHead(oid, len(rows))
	ok := false
	for _, r := range rows {
		if a, ok = appendValue(a, oid, r[i]); !ok {
			return nil, fmt.Errorf("argument %d is a %T", i+1, r[i])
		}
	}
	return a, nil
}

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
	case pgArray:
		return append(binary.BigEndian.AppendUint32(a, uint32(len(v))), v...), true
	}
	return a, false
}

// numbers is the array of 1 to n.
func numbers(n int) pgArray {
	a := arrayHead(pgtype.Int8OID, n)
	for i := range n {
		a = appendInt(a, int64(i)+1)
	}
	return a
}

func arrayHead(oid uint32, n int) pgArray {
	a := make(pgArray, 0, 20+n*20)
	a = binary.BigEndian.AppendUint32(a, 1) // dimensions
	a = binary.BigEndian.AppendUint32(a, 1) // there may be nulls
	a = binary.BigEndian.AppendUint32(a, oid)
	a = binary.BigEndian.AppendUint32(a, uint32(n))
	return binary.BigEndian.AppendUint32(a, 1) // the first has the number 1
}

func appendNull(a []byte) []byte { return binary.BigEndian.AppendUint32(a, 0xffffffff) }

func appendInt(a []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(a, 8), uint64(n))
}

// arrayCodec sends a pgArray as it is; whatever else comes is pgx's business.
type arrayCodec struct{ pgtype.Codec }

// PlanEncode implements pgtype.Codec.
func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(pgArray); ok {
		if format != pgtype.BinaryFormatCode {
			return nil
		}
		return arrayPlan{}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

type arrayPlan struct{}

// Encode implements pgtype.EncodePlan.
func (arrayPlan) Encode(value any, buf []byte) ([]byte, error) {
	return append(buf, value.(pgArray)...), nil
}

// takeArrays tells a connection what a pgArray is.
func takeArrays(m *pgtype.Map) {
	for _, oid := range []uint32{pgtype.ByteaArrayOID, pgtype.TextArrayOID, pgtype.Int8ArrayOID} {
		if t, ok := m.TypeForOID(oid); ok {
			m.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: arrayCodec{t.Codec}})
		}
	}
}
