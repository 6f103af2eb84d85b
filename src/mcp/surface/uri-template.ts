/**
 * Whether an address is one that a template stands for (RFC 6570). What stands in braces may be anything within one
 * segment, as in level 1; `{+x}` and `{#x}` anything at all; `{/x}`, `{?x}`, `{&x}`, `{;x}` and `{.x}` what they begin
 * with, or nothing. Servers write templates and callers addresses, so it follows all ways to read the address at once:
 * the time is at most the product of both lengths.
 */

/** What an expression may stand for: characters other than these, behind its own first character. */
interface Expression {
  readonly first: string
  readonly excluded: string
  readonly mayBeEmpty: boolean
}

const withinSegment: Expression = { first: '', excluded: '/?#', mayBeEmpty: false }
const anything: Expression = { first: '', excluded: '', mayBeEmpty: true }

const expressions: Readonly<Record<string, Expression>> = {
  '+': anything,
  '#': anything,
  '/': { first: '/', excluded: '?#', mayBeEmpty: true },
  '?': { first: '?', excluded: '#', mayBeEmpty: true },
  '&': { first: '&', excluded: '#', mayBeEmpty: true },
  ';': { first: ';', excluded: '/?#', mayBeEmpty: true },
  '.': { first: '.', excluded: '/?#', mayBeEmpty: true },
}

export function matchesTemplate(template: string, uri: string): boolean {
  let places = new Uint8Array(uri.length + 1)
  places[0] = 1
  for (const part of template.split(/(\{[^{}]*\})/)) {
    if (part === '') continue
    const isExpression = part.startsWith('{') && part.endsWith('}')
    places = isExpression
      ? afterExpression(expressions[part.charAt(1)] ?? withinSegment, uri, places)
      : afterText(part, uri, places)
  }
  return places[uri.length] === 1
}

/** The places of the address that a text leads to from these places. */
function afterText(text: string, uri: string, from: Uint8Array): Uint8Array<ArrayBuffer> {
  const to = new Uint8Array(from.length)
  for (let place = from.indexOf(1); place >= 0; place = from.indexOf(1, place + 1)) {
    if (uri.startsWith(text, place)) to[place + text.length] = 1
  }
  return to
}

function afterExpression({ first, excluded, mayBeEmpty }: Expression, uri: string, from: Uint8Array) {
  const to = new Uint8Array(from.length)
  const begins = first === '' ? from : afterText(first, uri, from)
  for (let place = 0; place <= uri.length; place++) {
    const goesOn = place > 0 && !excluded.includes(uri.charAt(place - 1))
    const isBegun = goesOn && (to[place - 1] === 1 || begins[place - 1] === 1)
    if (isBegun || (first !== '' && begins[place] === 1)) to[place] = 1
  }
  if (mayBeEmpty) for (let place = 0; place < to.length; place++) to[place] ||= from[place] ?? 0
  return to
}
