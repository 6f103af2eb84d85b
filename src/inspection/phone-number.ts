/** Tells a phone number from other rows of digit groups: dates, years, thousands, addresses, versions. */

const digitsOf = (text: string): string => text.replace(/\D/g, '')

const month = '(?:0?[1-9]|1[0-2])'
const date = new RegExp(
  `^(?:(?:19|20)\\d{2}[-. ]${month}[-. ]\\d{1,2}|${month}[-. ]\\d{1,2}[-. ]\\d{4}|\\d{1,2}[-. ]${month}[-. ]\\d{4})(?: \\d.*)?$`,
)
const years = /^(?:19|20)\d{2}[ -](?:19|20)\d{2}$/
const thousands = /(?:^|[ .])000$/
const socialSecurity = /^\d{3}[- ]\d{2}[- ]\d{4}$/

/** Whether a candidate is written as people write phone numbers. With a plus sign or an area code little else is asked. */
export function isPhoneNumber(text: string): boolean {
  const number = text.replace(/ ?(?:x|ext\.? ?)\d{1,5}$/, '')
  const { length } = digitsOf(number)
  if (!balanced(number)) return false
  if (number.startsWith('+')) return length >= 8 && length <= 15
  if (number.startsWith('(')) return length >= 7 && length <= 13
  if (number.startsWith('00')) return length >= 10 && length <= 17
  if (length < 7 || length > 13) return false
  if (date.test(number) || years.test(number) || thousands.test(number) || socialSecurity.test(number)) return false
  const groups = number.split(/[ .\-()]+/).filter((group) => group !== '')
  const separators = number.match(/[ .-]+/g) ?? []
  if (separators.length === 0) return number.startsWith('0') && length >= 10 && length <= 11
  if (new Set(separators).size > 1) return groups.length === 3 && length === 10
  if (groups.some((group) => group.length === 1) || (groups[0] ?? '').length > 4) return false
  if (separators[0] === '.') return groups.length === 3 && groups[2]?.length === 4
  return groups.length >= 3 || (groups.length === 2 && (groups[1] ?? '').length >= 4)
}

/** Parentheses hold one group: an area code, or a prefix that is left out. */
function balanced(text: string): boolean {
  return !/[()]/.test(text.replace(/\(\d{1,5}\)/g, ''))
}
