/** A record for those who may read and not change it: each member in words, other records by their names. */
import type { ComponentChildren } from 'preact'
import { fullTime, money } from '../../formats.ts'
import { isObject } from '../../json-object.ts'
import { fieldLabel } from '../../parts/forms/field-label.ts'
import type { JsonObject } from '../../parts/forms/schema-form.tsx'
import { Facts } from '../../parts/small.tsx'
import { userText } from '../../parts/user-text.tsx'
import { type NamedKind, RecordName, RecordNames } from '../record-name.tsx'

/** Said above the form by the kind of record itself, or of no use to a reader. */
const leftOut: ReadonlySet<string> = new Set(['effective_prices', 'version'])

/** The members that name other records by their ids, and the kinds of a scope. */
const kinds: Readonly<Record<string, NamedKind>> = {
  ...{ team: 'teams', team_id: 'teams', team_ids: 'teams', teams: 'teams' },
  ...{ user: 'users', user_id: 'users', users: 'users' },
  ...{ token: 'tokens', token_id: 'tokens', tokens: 'tokens' },
  ...{ gateway: 'gateways', gateways: 'gateways', provider_id: 'providers', mcp_server: 'mcp-servers' },
  budget: 'budgets',
}

const amounts: ReadonlySet<string> = new Set([
  ...['max_budget', 'current_spend', 'remaining', 'forecast', 'most_spent', 'audio_per_hour'],
  ...['per_million_characters', 'per_image', 'per_thousand_tool_uses', 'per_thousand_requests'],
])

const isAmount = (name: string): boolean => amounts.has(name) || name.endsWith('_per_million')

const isId = (value: unknown): value is string =>
  typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value)

export const RecordFacts = ({ record }: { record: JsonObject }) => (
  <Facts
    facts={Object.entries(record)
      .filter(([name, value]) => !leftOut.has(name) && !isEmpty(value))
      .map(([name, value]) => [fieldLabel(name), valueWords(name, value, record)] as const)}
  />
)

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)

function valueWords(name: string, value: unknown, { kind: beside }: JsonObject): ComponentChildren {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  if (typeof value === 'number') return isAmount(name) ? money(value) : String(value)
  // The id of a scope is that of a record of the kind beside it.
  const kind = kinds[name === 'id' ? String(beside) : name]
  if (typeof value === 'string') {
    if (kind !== undefined && isId(value)) return <RecordName kind={kind} id={value} linked />
    // A spend owner: `team:` and its id.
    const [of = '', id] = value.split(':')
    if (kinds[of] !== undefined && isId(id)) return <RecordName kind={kinds[of]} id={id} linked />
    return /_at$/.test(name) ? fullTime(value) : userText(value)
  }
  if (Array.isArray(value)) {
    if (kind !== undefined && value.every(isId)) return <RecordNames kind={kind} ids={value} />
    if (!value.some(isObject)) return userText(value.join(', '))
    return value.map((one, index) => <RecordFacts key={index} record={isObject(one) ? one : { value: one }} />)
  }
  return isObject(value) ? <RecordFacts record={value} /> : String(value)
}
