package airtel

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
)

// SimPublicKey is what PINs are encrypted with for a simulator, as Airtel's
// portal shows it. Its key is the same in all of them and in every run, so
// that a configuration goes on working.
const SimPublicKey = "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC5vRj+VC5s00Q7SM6cgCqB9+Q72z9/tmLBJajd6izzkIBNYm4LvYBwO78M1pTalF7eFl99EfpYDDr5C/PM1b9sOLaLDbJXbST3WQ8aP8qvOtPNgySrHVHFAfF1cvgOePsoxgj9lghsJI2h3mRIY2ySXlOXh05NaRiGLLC259dJpwIDAQAB"

// simKeyText is the other half. It is no secret: it opens PINs that were made
// up for a simulator.
const simKeyText = "" +
	"MIICXAIBAAKBgQC5vRj+VC5s00Q7SM6cgCqB9+Q72z9/tmLBJajd6izzkIBNYm4LvYBwO78M1pTalF7eFl99EfpYDDr5C/PM1b9s" +
	"OLaLDbJXbST3WQ8aP8qvOtPNgySrHVHFAfF1cvgOePsoxgj9lghsJI2h3mRIY2ySXlOXh05NaRiGLLC259dJpwIDAQABAoGBAJHc" +
	"KCaB4Ttg5XJRCL/p/ne2PiurT8BxcDgR5Pzwi4Byd+9NXvIlTRnWMYBZeuf0IFPz6eUEGz7Ny/oMItc2/G0f1gmh+lAtAA1OREv8" +
	"eUuULZlYHQXI9My5onIBtVxqsyQF7nLLdLbn50mbNU/ol95JQM5L9+p5yEWOudd4ip4BAkEA25wOCB1EdM6Xep7mwumjxc4+xMAx" +
	"X8w6/s5x6uTUxm0iXlrWjnl/1q9BxwikfjYyAWeZ9AEbNlFCoA1ukd9+JwJBANiEOMGitmT7WIucT4nJHmlJatyQW6qqqvV7W0t5" +
	"HYsfMnsMHFXnWhIgyGWYzo3gk+jZcvi7x4OdWtpyU2+siIECQHQi6QC9iZBEGLOOCPcW27clxOgDw5inxqMtxey0qxlsaXqAi2q5" +
	"MjP0ZtK87VCZlIRNp4r0ctGc06EUuV6HVI0CQE0V/jMKoE+hoSvLkhHnVfl8VxyCFPDVZJqTubRMQbV3fPyMGkaHYO0VWOO7HMcs" +
	"jtyXFrTx/h2g12jwzT30OoECQGVFMImXxaiy8X+LcL9Y18Kz5BI+GiDAwepGS90Pre1XVfGGDiVJKff+iMjjbgLC50qpJMYWzq7u" +
	"KZkIqluKIKU="

// simKey reads it.
func simKey() (*rsa.PrivateKey, error) {
	der, err := base64.StdEncoding.DecodeString(simKeyText)
	if err != nil {
		return nil, err
	}
	return x509.ParsePKCS1PrivateKey(der)
}

// SimSettings is [connection.airtel] for a simulator without other settings, and
// SimSecrets are the variables that it names.
const SimSettings = `country = "CG"
currency = "XAF"
operations = ["payments", "payouts"]
client_id_env = "SIM_AIRTEL_CLIENT_ID"
client_secret_env = "SIM_AIRTEL_CLIENT_SECRET"
pin_env = "SIM_AIRTEL_PIN"
pin_public_key = "` + SimPublicKey + `"
`

// SimSecrets are the credentials of SimSettings.
var SimSecrets = map[string]string{
	"SIM_AIRTEL_CLIENT_ID": SimClientID, "SIM_AIRTEL_CLIENT_SECRET": SimClientSecret, "SIM_AIRTEL_PIN": SimPIN,
}
