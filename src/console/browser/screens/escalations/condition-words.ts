/**
 * What a condition (`when`, in CEL) asks for, in words, for a reviewer who does not read CEL. Comparisons and searches as
 * people usually write them have words; any other part stands as it is written.
 */

/** `the request offers the tool “transfer”, and its text contains “IBAN”`. */
export function conditionWords(when: string): string {
  const alternatives = split(unwrapped(when), '||')
  if (alternatives.length > 1) return alternatives.map(conditionWords).join(', or ')
  const parts = split(unwrapped(when), '&&')
  if (parts.length > 1) return parts.map(conditionWords).join(', and ')
  const [part = ''] = parts
  const text = part.trim()
  if (/^!\s*\(/.test(text)) return `it is not so that ${conditionWords(text.slice(1))}`
  return phrase(text) ?? `\`${text}\``
}

const literal = String.raw`("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')`
const list = String.raw`\[([^\]]*)\]`
const operand = String.raw`([a-z_]+(?:\.[a-z_]+)*(?:\[${literal}\])?)`

type Say = (found: readonly string[]) => string
const phrases: readonly (readonly [pattern: string, say: Say])[] = [
  [
    String.raw`request\.tools\.exists\((\w+), \1 == ${literal}\)`,
    ([, name]) => `the request offers the tool ${said(name)}`,
  ],
  [
    String.raw`request\.tools\.exists\((\w+), \1 in ${list}\)`,
    ([, names]) => `the request offers one of the tools ${each(names)}`,
  ],
  [
    String.raw`response\.tool_calls\.exists\((\w+), \1 == ${literal}\)`,
    ([, name]) => `the answer calls the tool ${said(name)}`,
  ],
  [
    String.raw`response\.tool_calls\.exists\((\w+), \1 in ${list}\)`,
    ([, names]) => `the answer calls one of the tools ${each(names)}`,
  ],
  [String.raw`size\(${operand}\) > (\d+)`, ([of, , count]) => `there are more than ${count} in ${thing(of)}`],
  [`${literal} in ${operand}`, ([value, of]) => `${said(value)} is among ${thing(of)}`],
  [String.raw`!\(?${literal} in ${operand}\)?`, ([value, of]) => `${said(value)} is not among ${thing(of)}`],
  [`${operand} in ${list}`, ([of, , values]) => `${thing(of)} is one of ${each(values)}`],
  [String.raw`${operand}\.contains\(${literal}\)`, ([of, , value]) => `${thing(of)} contains ${said(value)}`],
  [String.raw`!${operand}\.contains\(${literal}\)`, ([of, , value]) => `${thing(of)} does not contain ${said(value)}`],
  [String.raw`${operand}\.startsWith\(${literal}\)`, ([of, , value]) => `${thing(of)} begins with ${said(value)}`],
  [String.raw`${operand}\.endsWith\(${literal}\)`, ([of, , value]) => `${thing(of)} ends with ${said(value)}`],
  [
    String.raw`${operand}\.matches\(r?${literal}\)`,
    ([of, , value]) => `${thing(of)} matches the pattern ${said(value)}`,
  ],
  [String.raw`${operand} (==|!=|>=|<=|>|<) (?:double\()?(?:${literal}|(-?[\d.]+|true|false))\)?`, compared],
  [String.raw`(?:double|int)\(${operand}\) (==|!=|>=|<=|>|<) (?:${literal}|(-?[\d.]+|true|false))`, compared],
]

const compiled = phrases.map(
  ([pattern, say]) => [new RegExp(`^${pattern.replaceAll(' ', String.raw`\s*`)}$`, 's'), say] as const,
)

function phrase(text: string): string | null {
  for (const [pattern, say] of compiled) {
    const found = pattern.exec(text)
    if (found !== null) return say(found.slice(1))
  }
  return null
}

const relations: Readonly<Record<string, string>> = {
  ...{ '==': 'is', '!=': 'is not', '>': 'is more than', '<': 'is less than' },
  ...{ '>=': 'is at least', '<=': 'is at most' },
}

function compared([of, , relation = '', text, plain]: readonly string[]): string {
  return `${thing(of)} ${relations[relation]} ${text === undefined ? plain : said(text)}`
}

const things: Readonly<Record<string, string>> = {
  'request.text': 'the text of the request',
  'request.model': 'the model asked for',
  'request.family': 'the API family',
  'request.stream': 'whether the answer streams',
  'request.session_id': 'the session',
  'request.tools': 'the tools that the request offers',
  'request.messages': 'the messages of the request',
  'request.tool.name': 'the tool that the request calls',
  'response.text': 'the text of the answer',
  'response.status': 'the status of the answer',
  'response.tool_calls': 'the tools that the answer calls',
  'model.id': 'the model',
  'model.provider': 'the provider',
  'token.id': 'the token',
  'token.purpose': 'the purpose of the token',
  'token.roles': 'the roles of the token',
  'token.team_id': 'the team of the token',
  'token.user_id': 'the person of the token',
}

const holders: readonly (readonly [path: string, words: string])[] = [
  ['request.tool.arguments', 'the argument'],
  ['request.headers', 'the header'],
  ['token.metadata', 'the metadata of the token'],
]

/** `request.tool.arguments["sum"]` as `the argument “sum”`. */
function thing(path = ''): string {
  for (const [holder, words] of holders) {
    if (!path.startsWith(holder)) continue
    const member = path.slice(holder.length).replace(/^\.|^\[|\]$/g, '')
    return member === '' ? `${words}s` : `${words} ${said(member)}`
  }
  return things[path] ?? `\`${path}\``
}

/** A literal, or a plain name, as a person reads it. */
const said = (text = ''): string => `“${/^["']/.test(text) ? text.slice(1, -1).replaceAll(/\\(.)/gs, '$1') : text}”`

const each = (values = ''): string =>
  split(values, ',')
    .map((value) => said(value.trim()))
    .join(', ')

/** Without brackets that hold all of it. */
function unwrapped(text: string): string {
  const whole = text.trim()
  if (!whole.startsWith('(')) return whole
  return closingOf(whole, 0) === whole.length - 1 ? unwrapped(whole.slice(1, -1)) : whole
}

const opening = '(['
const closing = ')]'

/** Where the bracket that opens at `from` closes; -1 where it does not. */
function closingOf(text: string, from: number): number {
  let depth = 0
  for (const { at, character } of outsideStrings(text, from)) {
    if (opening.includes(character)) depth += 1
    if (closing.includes(character)) depth -= 1
    if (depth === 0) return at
  }
  return -1
}

/** The parts between separators that stand in no brackets and no string. */
function split(text: string, separator: string): string[] {
  const parts: string[] = []
  let depth = 0
  let from = 0
  for (const { at, character } of outsideStrings(text, 0)) {
    if (opening.includes(character)) depth += 1
    if (closing.includes(character)) depth -= 1
    if (depth !== 0 || at < from || !text.startsWith(separator, at)) continue
    parts.push(text.slice(from, at))
    from = at + separator.length
  }
  return [...parts, text.slice(from)]
}

function* outsideStrings(text: string, from: number): Generator<{ at: number; character: string }> {
  let quote = ''
  for (let at = from; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (quote !== '') {
      if (character === '\\') at += 1
      else if (character === quote) quote = ''
    } else if (character === '"' || character === "'") quote = character
    else yield { at, character }
  }
}
