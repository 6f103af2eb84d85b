/**
 * Attribution of an OTLP export in JSON (OTLP specification, "JSON Protobuf Encoding"). Numbers that no double
 * holds, such as nanoseconds, keep their text.
 */
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import { parseExactly } from '../../lib/json/exact-json.ts'
import { type Attribution, checkResources, malformed, ownPrefix, type Signal } from './attribution.ts'

/** Fields may be written in lower camel case or as in the proto file. */
const members: Readonly<Record<Signal, readonly [camel: string, original: string]>> = {
  metrics: ['resourceMetrics', 'resource_metrics'],
  logs: ['resourceLogs', 'resource_logs'],
  traces: ['resourceSpans', 'resource_spans'],
}

const listed = z.array(
  z.looseObject({
    resource: z.looseObject({ attributes: z.array(z.looseObject({ key: z.string() })).nullish() }).nullish(),
  }),
)
const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

export function attributedJson(bytes: Uint8Array, signal: Signal, attribution: Attribution): Uint8Array {
  try {
    const body = z.looseObject({}).parse(parseExactly(strictUtf8.decode(bytes)))
    const added = attribution.map(([key, value]) => ({ key, value: { stringValue: value } }))
    let count = 0
    for (const member of members[signal]) {
      if (body[member] === undefined || body[member] === null) continue
      const resources = listed.parse(body[member])
      count += resources.length
      checkResources(count)
      body[member] = resources.map(({ resource, ...rest }) => ({
        ...rest,
        resource: {
          ...resource,
          attributes: [...(resource?.attributes ?? []).filter(({ key }) => !key.startsWith(ownPrefix)), ...added],
        },
      }))
    }
    return Buffer.from(JSON.stringify(body))
  } catch (thrown) {
    // Text that is not UTF-8, no JSON, of another form, or nested deeper than the stack.
    throw thrown instanceof Failure ? thrown : malformed(thrown)
  }
}
