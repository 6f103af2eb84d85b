/**
 * Recognises records that the ledger has already. An instance whose chain could not continue hands records over to the
 * next one that may have reached the ledger (fleet/outbox/carried-over.ts): they keep their ids and name the place they
 * had in the former chain.
 */
import { z } from 'zod'
import type { Reader } from '../../store/open.ts'
import { logOf } from '../engine/log-of.ts'
import type { LogRecord } from '../log/record.ts'

const carriedSchema = z.object({ instance_id: z.uuid(), n: z.number().int().min(1) })

/** The ids of those of these records, of a worker's chain, that its former chain has. */
export async function recordedBefore(
  ledger: Reader,
  chain: string,
  records: readonly LogRecord[],
): Promise<ReadonlySet<string>> {
  const [gatewayId, , worker] = chain.split('/')
  const chains = logOf(ledger).chains()
  const found = new Set<string>()
  for (const { event_id: id, details } of records) {
    const { data: place } = carriedSchema.safeParse(details?.carried_from)
    if (place === undefined) continue
    const former = `${gatewayId}/${place.instance_id}/${worker}`
    const range = { after: place.n - 1, upTo: place.n, bodies: true }
    for await (const record of chains.records(former, range)) {
      if (record !== null && idOf(record.body) === id) found.add(id)
    }
  }
  return found
}

const idSchema = z.object({ event_id: z.string() })

function idOf(body: Uint8Array): string | null {
  try {
    return idSchema.parse(JSON.parse(Buffer.from(body).toString())).event_id
  } catch {
    // It was quarantined: it is no record.
    return null
  }
}
