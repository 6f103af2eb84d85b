/** Log records by OTLP over HTTP in JSON (opentelemetry.io/docs/specs/otlp, version 1.x): `/v1/logs`. */
import { z } from 'zod'
import { version } from '../../version.ts'
import { ContentRefused, type Item, type SinkKind } from '../sink.ts'
import { authorization, beginning, gzipped, joined, post, quoted } from './post.ts'

type Value = { stringValue: string } | { intValue: string } | { doubleValue: number }

const otlpValue = (value: string | number): Value => {
  if (typeof value === 'string') return { stringValue: value }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

const attributesOf = (values: Readonly<Record<string, string | number | null>>) =>
  Object.entries(values).flatMap(([key, value]) => (value === null ? [] : [{ key, value: otlpValue(value) }]))

/** Severity numbers of the data model: 9 is INFO, 13 WARN. */
function logRecord({ id, at, type, verdict, fields, json }: Item) {
  const nanoseconds = `${at}000000`
  const isUsual = verdict === 'allow' || verdict === ''
  return {
    timeUnixNano: nanoseconds,
    observedTimeUnixNano: nanoseconds,
    severityNumber: isUsual ? 9 : 13,
    severityText: isUsual ? 'INFO' : 'WARN',
    eventName: `gatehouse.${type}`,
    body: { stringValue: json },
    attributes: attributesOf({ 'event.id': id, 'event.type': type, verdict, ...fields }),
  }
}

const partial = z.object({
  partialSuccess: z
    .object({ rejectedLogRecords: z.coerce.number().catch(0), errorMessage: z.string().catch('') })
    .optional(),
})

export const otlp: SinkKind = {
  formats: ['events', 'ocsf'],
  proves: false,
  schemes: { tls: 'https', plain: 'http' },
  needs: [],
  most: { items: 2000, bytes: 3_000_000 },
  restMilliseconds: () => 1000,
  open(sink, tools) {
    const url = new URL(sink.url)
    if (url.pathname === '/') url.pathname = '/v1/logs'
    const attributes = attributesOf({ 'service.name': 'gatehouse', 'service.version': version })
    const [resource, scope] = [JSON.stringify({ attributes }), JSON.stringify({ name: 'gatehouse', version })]
    const headers = {
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      ...authorization(sink.credentials),
    }
    return {
      async send({ items }, signal) {
        const records = await joined(items, (item) => JSON.stringify(logRecord(item)), ',')
        const logs = `[{"scope":${scope},"logRecords":[${records}]}]`
        const body = await gzipped(`{"resourceLogs":[{"resource":${resource},"scopeLogs":${logs}}]}`)
        const text = await beginning(await post(sink, tools, { url: url.href, headers, body }, signal))
        const rejected = readPartial(text)
        if (rejected === null) return
        throw new ContentRefused(`The receiver rejected log records${quoted(rejected, sink.credentials)}`)
      },
      close: async () => undefined,
    }
  },
}

/** What an answer says of log records that were not taken; null where all were. */
function readPartial(text: string): string | null {
  try {
    const { partialSuccess } = partial.parse(JSON.parse(text))
    return partialSuccess === undefined || partialSuccess.rejectedLogRecords === 0 ? null : partialSuccess.errorMessage
  } catch {
    // An empty body, or one in another form, with a status of success.
    return null
  }
}
