/**
 * Parses an event or a record of the log from JSON, with the same result as its schema. Nearly all events have exactly the form of this
 * release, which a direct check accepts in a fifth of the time that the schema takes to check and copy. Everything
 * else goes through the schema. So what is accepted here must be what the schema accepts unchanged.
 */
import { z } from 'zod'
import {
  attributionSchema,
  costAttributionSchema,
  type Event,
  eventSchema,
  settlementSchema,
  verdicts,
} from './event.ts'
import { eventTypes } from './event-types.ts'
import { innerEventSchema, type LogRecord, recordSchema } from './log/record.ts'

type Check = (value: unknown) => boolean

/** Null where it is no event. */
export function readEvent(value: unknown): Event | null {
  if (isPlainEvent(value)) return value
  const parsed = eventSchema.safeParse(value)
  return parsed.success ? parsed.data : null
}

/** Null where it is no record, or has attempts and decisions although it is no outcome. */
export function readRecord(value: unknown): LogRecord | null {
  const record = plainRecord(value) ? value : recordSchema.safeParse(value).data
  if (record === undefined) return null
  const isExchange = record.attempts !== undefined || record.decisions !== undefined
  return isExchange && record.event_type !== 'gateway.request.outcome' ? null : record
}

/** Exported for tests: whether it is an event without anything that the schema would drop. */
export const isPlainEvent = (value: unknown): value is Event => plainEvent(value)

const isText: Check = (value) => typeof value === 'string'
const isTextOrNull: Check = (value) => value === null || typeof value === 'string'
const isCountOrNull: Check = (value) => value === null || Number.isSafeInteger(value)
const isInteger: Check = (value) => Number.isSafeInteger(value)

const matching =
  (form: RegExp): Check =>
  (value) =>
    typeof value === 'string' && form.test(value)

const oneOf = (values: readonly unknown[]): Check => {
  const all = new Set(values)
  return (value) => all.has(value)
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An object with all required fields and no unknown ones; `checks` are the checks of each field. */
function shape<Members extends z.ZodRawShape>(
  schema: z.ZodObject<Members>,
  checks: Readonly<Record<keyof Members, Check>>,
): Check {
  const known = new Map<string, { check: Check; needed: number }>()
  const members = Object.entries<z.core.$ZodType>(schema.shape)
  const needed = new Set(members.filter(([, member]) => !z.safeParse(member, undefined).success).map(([name]) => name))
  for (const [name, check] of Object.entries<Check>(checks)) {
    if (Object.hasOwn(schema.shape, name)) known.set(name, { check, needed: needed.has(name) ? 1 : 0 })
  }
  return (value) => {
    if (!isPlainObject(value)) return false
    let found = 0
    for (const name in value) {
      const member = known.get(name)
      if (member?.check(value[name]) !== true) return false
      found += member.needed
    }
    return found === needed.size
  }
}

/** The schema drops this one key even where any key is allowed. */
const isRecord = (value: unknown): value is Record<string, unknown> =>
  isPlainObject(value) && !Object.hasOwn(value, '__proto__')

const isUuid = matching(z.regexes.uuid())

const isSettlement = shape(settlementSchema, {
  account: isText,
  amount: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
})

const isTexts: Check = (value) => isRecord(value) && Object.values(value).every(isText)

const eventChecks = {
  event_id: isUuid,
  event_type: oneOf(eventTypes),
  request_id: isTextOrNull,
  timestamp: matching(z.regexes.datetime({})),
  verdict: oneOf(verdicts),
  reason_code: isText,
  config_version: isInteger,
  event_attribution: shape(attributionSchema, {
    ...{ token_id: isTextOrNull, team_id: isTextOrNull, user_id: isTextOrNull, gateway_id: isTextOrNull },
    ...{ oauth_client_id: isTextOrNull, session_id: isTextOrNull, key_class: isTextOrNull, client: isText },
    ...{ workload_identity_id: isText, workload_subject: isText, dimensions: isTexts },
  }),
  exchange_id: isUuid,
  trace_id: isText,
  config_id: isText,
  environment: isText,
  details: isRecord,
  metadata: isTexts,
  prompt_redacted: isText,
  prompt_hash: isText,
  event_cost_attribution: shape(costAttributionSchema, {
    currency: oneOf(['USD']),
    cost: (value: unknown) => value === null || Number.isFinite(value),
    estimated: (value) => typeof value === 'boolean',
    ...{ input_tokens: isCountOrNull, output_tokens: isCountOrNull },
    ...{ cached_input_tokens: isCountOrNull, reasoning_tokens: isCountOrNull },
    ...{ provider: isText, model: isText, price_source: isTextOrNull, spend_owner: isTextOrNull },
  }),
  settlements: (value: unknown) => Array.isArray(value) && value.every(isSettlement),
}

const plainEvent = shape(eventSchema, eventChecks)

const isInnerEvent = shape(innerEventSchema, {
  ...{ event_id: isUuid, verdict: oneOf(verdicts), reason_code: isText, details: isRecord },
})
const isInnerEvents: Check = (value) => Array.isArray(value) && value.every(isInnerEvent)

const isPlainRecord = shape(recordSchema, { ...eventChecks, attempts: isInnerEvents, decisions: isInnerEvents })
const plainRecord = (value: unknown): value is LogRecord => isPlainRecord(value)
