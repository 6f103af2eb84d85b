/** A record as a row of ClickHouse (schema.ts). */
import { type Quarantine, quarantinedEvent } from '../log/quarantine.ts'
import { type FacetName, facetNames, type LogRecord, visitFacets, visitIds } from '../log/record.ts'
import { countedOutcome, countedTypes } from '../rollups/rollup.ts'

/** What is known of a record where it is moved from. */
export interface MovedRecord {
  position: number
  /** Milliseconds since the epoch. */
  at: number
  receivedAt: number
  chain: string
  seq: number
  text: string
  quarantine: Quarantine | undefined
  /** The chain's digest before it, where the ledger names it; else empty. */
  digestBefore: string
  /** The same behind it. */
  digestAfter: string
}

/** The other columns are those of schema.ts. */
export interface RecordRow extends Record<string, unknown> {
  position: number
  text: string
}

export function rowOf(moved: MovedRecord): RecordRow {
  const { position, at, receivedAt, chain, seq, text, quarantine, digestBefore, digestAfter } = moved
  const record: LogRecord = quarantine === undefined ? JSON.parse(text) : quarantinedEvent(quarantine, at)
  const facets = new Map<FacetName, Set<string>>(facetNames.map((facet) => [facet, new Set()]))
  visitFacets(record, (facet, value) => facets.get(facet)?.add(value.toWellFormed()))
  const ids = new Set<string>()
  visitIds(record, (id) => ids.add(id.toWellFormed()))
  return {
    ...{ position, at, received_at: receivedAt, chain, seq, text },
    ...{ digest_before: digestBefore, digest_after: digestAfter },
    note: quarantine === undefined ? '' : JSON.stringify(quarantine),
    ids: [...ids],
    ...Object.fromEntries([...facets].map(([facet, values]) => [facet, [...values]])),
    ...sumsOf(record, at),
  }
}

function sumsOf(record: LogRecord, at: number): Record<string, number> {
  if (!countedTypes.includes(record.event_type)) {
    return { requests: 0, input_tokens: 0, output_tokens: 0, cost_nano: 0, latency_ms: 0 }
  }
  const { inputTokens, outputTokens, cost, latency } = countedOutcome(record, at)
  return {
    requests: 1,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cost_nano: cost,
    latency_ms: Math.min(Math.round(latency ?? 0), 2 ** 32 - 1),
  }
}
