/** What a country says about its numbers, as `method.countries[0].phone`. */
export interface PhoneRule {
  calling_code: string;
  length: number;
  example: string;
}

export type PhoneErrorCode = "empty" | "not_digits" | "other_country" | "too_short" | "too_long";

/** Says what is wrong with a phone number, in one word. */
export class PhoneError extends Error {
  override name = "PhoneError";
  constructor(readonly code: PhoneErrorCode) {
    super("till: the phone number is wrong: " + code);
  }
}

const maxText = 64;

export const Phone = {
  /**
   * Reads what a person typed, by the rule of a country. It returns the digits to show and to confirm,
   * calling code first: "+242 06 123 45 67" is "242061234567". A number without its calling code gets it;
   * a trunk zero goes where the country's numbers have none, and stays in Congo, where it belongs to the
   * number.
   */
  read(text: string, rule: PhoneRule): string {
    const wrong = (code: PhoneErrorCode): never => {
      throw new PhoneError(code);
    };
    if (text.length > maxText) wrong("too_long");
    let number = text.replace(/[ \u00a0\u202f\-./()]/g, "");
    const bare = number.replace(/^(\+|00)/, "");
    const international = bare !== number;
    number = bare;
    if (!number) wrong("empty");
    if (!/^[0-9]+$/.test(number)) wrong("not_digits");
    const { calling_code: code, length } = rule;
    if (number.startsWith(code) && (international || number.length >= length)) {
      // It is whole, or wrong in its length.
    } else if (international) wrong("other_country");
    else if (number[0] === "0" && !rule.example.startsWith(code + "0")) number = code + number.slice(1);
    else if (number.length <= length - code.length) number = code + number;
    if (number.length < length) wrong("too_short");
    if (number.length > length) wrong("too_long");
    if (!number.startsWith(code)) wrong("other_country");
    return number;
  },
};
