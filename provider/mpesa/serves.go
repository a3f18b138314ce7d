package mpesa

// Daraja keeps M-Pesa wallets of Kenya and moves shillings.
const (
	Method  = "mpesa"
	country = "KE"
)

// Serves implements provider.Selective.
func (*paymentService) Serves(method, where, money string) bool { return serves(method, where, money) }

// Serves implements provider.Selective.
func (*payoutService) Serves(method, where, money string) bool { return serves(method, where, money) }

func serves(method, where, money string) bool {
	return method == Method && where == country && money == currency
}
