/** A record for those who may read and not change it: each member in words. */
import type { ComponentChildren } from 'preact'
import { fullTime } from '../../formats.ts'
import { isObject } from '../../json-object.ts'
import { fieldLabel } from '../../parts/forms/field-label.ts'
import type { JsonObject } from '../../parts/forms/schema-form.tsx'
import { Facts } from '../../parts/small.tsx'
import { userText } from '../../parts/user-text.tsx'

/** Said above the form by the kind of record itself. */
const saidElsewhere: ReadonlySet<string> = new Set(['effective_prices'])

export const RecordFacts = ({ record }: { record: JsonObject }) => (
  <Facts
    facts={Object.entries(record)
      .filter(([name, value]) => !saidElsewhere.has(name) && !isEmpty(value))
      .map(([name, value]) => [fieldLabel(name), valueWords(name, value)] as const)}
  />
)

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)

function valueWords(name: string, value: unknown): ComponentChildren {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  if (typeof value === 'string') return /_at$/.test(name) ? fullTime(value) : userText(value)
  if (Array.isArray(value)) {
    if (!value.some(isObject)) return userText(value.join(', '))
    return value.map((one, index) => <RecordFacts key={index} record={isObject(one) ? one : { value: one }} />)
  }
  return isObject(value) ? <RecordFacts record={value} /> : String(value)
}
