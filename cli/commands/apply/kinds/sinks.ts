import { z } from 'zod'
import { checkSink } from '../../../../src/sinks/check-sink.ts'
import { sinkKindOf } from '../../../../src/sinks/kinds/index.ts'
import { configSchema, createSinkBody, sinkResource } from '../../../../src/sinks/sink-resource.ts'
import { kindOf, secretThere } from '../kind.ts'
import type { Entry } from '../places.ts'

/** With the format that a sink has which names none. */
const withFormat = (entry: Entry): Entry => ({ format: sinkKindOf(String(entry.kind)).formats[0], ...entry })

/** Credentials as the API tells them: each by its name, headers with theirs. */
function credentialsShown(names: unknown): Entry | null {
  const known = z.array(z.string()).parse(names)
  const headers = known.flatMap((name) => (name.startsWith('headers.') ? [name.slice('headers.'.length)] : []))
  const others = known.filter((name) => !name.startsWith('headers.'))
  if (known.length === 0) return null
  return {
    ...Object.fromEntries(others.map((name) => [name, secretThere])),
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers.map((name) => [name, secretThere])) }),
  }
}

/** Whether plain addresses are allowed is a setting of the control plane. */
function check(body: unknown): void {
  const { name: _, start: _s, enabled: _e, ...given } = createSinkBody.parse(body)
  const { kind, url, filter = null, format = sinkKindOf(kind).formats[0], credentials = {}, ...parts } = given
  checkSink({ kind, url, format, filter, config: configSchema.parse(parts), credentials }, 'anywhere', null)
}

/** `start` matters where a sink is made only: later it has a place in the record. */
export const sinks = kindOf(sinkResource, {
  normalised: withFormat,
  ignored: ['start'],
  secretsWith: ['url'],
  shown: ({ credential_names: names }) => ({ credentials: credentialsShown(names) }),
  check,
})
