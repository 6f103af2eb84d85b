/** Tells a phone number from other rows of digit groups: dates, years, thousands, addresses, versions. */

function digitCount(text: string): number {
  let count = 0
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit >= 0x30 && unit <= 0x39) count++
  }
  return count
}

const month = '(?:0?[1-9]|1[0-2])'
const date = new RegExp(
  `^(?:(?:19|20)\\d{2}[-. ]${month}[-. ]\\d{1,2}|${month}[-. ]\\d{1,2}[-. ]\\d{4}|\\d{1,2}[-. ]${month}[-. ]\\d{4})(?: \\d.*)?$`,
)
const separator = /[ .\-()]+/
const extension = / ?(?:x|ext\.? ?)\d{1,5}$/
const years = /^(?:19|20)\d{2}[ -](?:19|20)\d{2}$/
const thousands = /(?:^|[ .])000$/
const socialSecurity = /^\d{3}[- ]\d{2}[- ]\d{4}$/

/** Whether a candidate is written as people write phone numbers. With a plus sign or an area code little else is asked. */
export function isPhoneNumber(text: string): boolean {
  const number = text.includes('x') ? text.replace(extension, '') : text
  const length = digitCount(number)
  if (length < 7 || length > 17 || !balanced(number)) return false
  if (number.startsWith('+')) return length >= 8 && length <= 15
  if (number.startsWith('00')) return length >= 10
  if (length > 13) return false
  return number.startsWith('(') || isGrouped(number, length)
}

/** Whether digits without prefix or area code stand in groups as those of a number do. */
function isGrouped(number: string, length: number): boolean {
  const groups = number.split(separator)
  const [first = '', second = '', third = ''] = groups
  if (groups.length === 1) return number.startsWith('0') && length >= 10 && length <= 11
  if (groups.some((group) => group.length === 1) || first.length > 4) return false
  // Three groups of four are most of a card number.
  if (groups.length >= 3 && groups.every((group) => group.length === 4)) return false
  if (date.test(number) || years.test(number) || thousands.test(number) || socialSecurity.test(number)) return false
  const between = number.charAt(first.length)
  if (groups.length > 2 && number.charAt(first.length + 1 + second.length) !== between) {
    return groups.length === 3 && length === 10
  }
  if (between === '.') return groups.length === 3 && third.length === 4
  return groups.length >= 3 || second.length >= 4
}

/** Parentheses hold one group: an area code, or a prefix that is left out. */
function balanced(text: string): boolean {
  return !text.includes('(') && !text.includes(')') ? true : !/[()]/.test(text.replace(/\(\d{1,5}\)/g, ''))
}
