/** For tests: credentials written by the samples of rules. */

const alphabets: Readonly<Record<string, string>> = {
  digit: '0123456789',
  hex: '0123456789abcdef',
  lower: 'abcdefghijklmnopqrstuvwxyz0123456789',
  ALNUM: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789',
  alnum: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789',
  url: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-',
  base64: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
  base32: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  bech32: 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L',
}

/** `shpat_{hex 32}` with 32 digits that look random and are the same each time. */
export function exampleSecret(sample: string, seed = 1): string {
  let state = seed
  return sample.replace(/\{(\w+) (\d+)\}/g, (_all, name: string, count: string) => {
    const alphabet = alphabets[name] ?? ''
    return Array.from({ length: Number(count) }, () => {
      // Park and Miller, CACM 31(10), 1988.
      state = (state * 48_271) % 2_147_483_647
      return alphabet.charAt(state % alphabet.length)
    }).join('')
  })
}
