/** What may stand at a place of a condition in CEL: variables, their members, and the functions of a value. */

export interface Completion {
  /** What is put in the place of what was typed. */
  text: string
  /** What it is. */
  about: string
}

export interface Completions {
  /** Where what they replace begins. */
  from: number
  found: readonly Completion[]
}

type Kind = 'text' | 'number' | 'truth' | 'time' | 'texts' | 'messages' | 'map' | 'tool'

/** As `policies/conditions/condition.ts` registers them. */
const variables: Readonly<Record<string, Readonly<Record<string, Kind>>>> = {
  request: {
    ...{ text: 'text', model: 'text', family: 'text', messages: 'messages', tools: 'texts', stream: 'truth' },
    ...{ headers: 'map', session_id: 'text', tool: 'tool' },
  },
  response: { text: 'text', tool_calls: 'texts', status: 'number' },
  token: {
    ...{ roles: 'texts', purpose: 'text', team_id: 'text', user_id: 'text', id: 'text', gateway_id: 'text' },
    metadata: 'map',
  },
  model: { id: 'text', provider: 'text' },
}

const functions: Readonly<Partial<Record<Kind, readonly Completion[]>>> = {
  text: [
    { text: 'contains("")', about: 'Whether it holds a text' },
    { text: 'startsWith("")', about: 'Whether it begins with a text' },
    { text: 'endsWith("")', about: 'Whether it ends with a text' },
    { text: 'matches("")', about: 'Whether a pattern is found in it' },
    { text: 'size()', about: 'How many characters it has' },
  ],
  texts: [
    { text: 'exists(one, one == "")', about: 'Whether one of them is so' },
    { text: 'all(one, one != "")', about: 'Whether each of them is so' },
    { text: 'size()', about: 'How many there are' },
  ],
  messages: [
    { text: 'exists(one, one.role == "user")', about: 'Whether one of them is so' },
    { text: 'size()', about: 'How many there are' },
  ],
  map: [{ text: 'size()', about: 'How many members it has' }],
  tool: [
    { text: 'name', about: 'The name of the MCP tool that is called' },
    { text: 'arguments', about: 'What it is called with' },
  ],
  time: [
    { text: 'getHours()', about: 'The hour, in UTC' },
    { text: 'getDayOfWeek()', about: 'The day of the week: 0 is Sunday' },
  ],
}

const kindWords: Readonly<Record<Kind, string>> = {
  ...{ text: 'text', number: 'number', truth: 'true or false', time: 'instant', texts: 'list of texts' },
  ...{ messages: 'list of messages, each with role and text', map: 'texts by name', tool: 'called MCP tool' },
}

/** At a caret. `answered`: the stages all come after the answer, so that `response` is known. */
export function completionsAt(condition: string, caret: number, { answered }: { answered: boolean }): Completions {
  const before = condition.slice(0, caret)
  const typed = /[A-Za-z_][\w.]*$/.exec(before)?.[0] ?? ''
  if (isInText(before)) return { from: caret, found: [] }
  const path = typed.split('.')
  const last = path.at(-1) ?? ''
  const found = membersOf(path.slice(0, -1), answered).filter(({ text }) => text.startsWith(last) && text !== last)
  return { from: caret - last.length, found }
}

function membersOf([variable, member, ...more]: readonly string[], answered: boolean): readonly Completion[] {
  if (variable === undefined) return roots(answered)
  if (more.length > 0) return []
  if (variable === 'now') return member === undefined ? (functions.time ?? []) : []
  const members = Object.hasOwn(variables, variable) ? variables[variable] : undefined
  if (members === undefined) return []
  if (member === undefined) {
    return Object.entries(members).map(([text, kind]) => ({ text, about: kindWords[kind] }))
  }
  const kind = members[member]
  return kind === undefined ? [] : (functions[kind] ?? [])
}

const roots = (answered: boolean): readonly Completion[] => [
  { text: 'request', about: 'What was asked' },
  ...(answered ? [{ text: 'response', about: 'What was answered' }] : []),
  { text: 'token', about: 'Who asks' },
  { text: 'model', about: 'The model and its provider' },
  { text: 'now', about: kindWords.time },
]

/** Whether the place is within a quoted text. */
function isInText(before: string): boolean {
  let quote = ''
  for (let at = 0; at < before.length; at++) {
    const unit = before[at] ?? ''
    if (quote !== '' && unit === '\\') at += 1
    else if (quote === unit) quote = ''
    else if (quote === '' && (unit === '"' || unit === "'")) quote = unit
  }
  return quote !== ''
}

/** Where the API says that a condition is wrong; null where it says no place. */
export function placeOf(fault: string, condition: string): { line: number; column: number; at: number } | null {
  const said = /\(at character (\d+)\)$/.exec(fault)?.[1]
  if (said === undefined) return null
  const at = Math.min(Number(said) - 1, condition.length)
  const lines = condition.slice(0, at).split('\n')
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1, at }
}
