/** Decimal digits of all scripts: whoever reads `٣` reads 3. */

const decimal = /\p{Nd}/u
const isDecimal = (codePoint: number): boolean => decimal.test(String.fromCodePoint(codePoint))

/** The ASCII digit of a decimal digit; any other character as it is. */
export function asciiDigit(codePoint: number): number {
  if (codePoint < 0x80 || !isDecimal(codePoint)) return codePoint
  // Unicode encodes them in order, ten by ten (The Unicode Standard, section 4.6).
  let before = codePoint
  while (isDecimal(before - 1)) before--
  return 0x30 + ((codePoint - before) % 10)
}

export const withAsciiDigits = (text: string): string =>
  text.replace(/\p{Nd}/gu, (digit) => String.fromCodePoint(asciiDigit(digit.codePointAt(0) ?? 0)))
