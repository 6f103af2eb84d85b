/**
 * The table of the event log in ClickHouse. Every column but the text is made from the record, so that queries open few
 * texts; its order is that in which pages are read.
 *
 *   at, received_at   milliseconds since the epoch, as the ledger has them; `time` is `at` for people
 *   digest_before     the chain's digest before the record where the ledger named it, else empty; `digest_after` alike
 *   note              what the ledger says of a quarantined record, as JSON, else empty
 *   a facet           the values that the record's events have of it (log/record.ts)
 *
 * A record may be inserted twice, after a kill between the two databases. Both have the same key: a merge keeps one, and
 * readers skip the other until then. An insert that comes twice as a whole is recognised by its token.
 *
 * Granules have about a megabyte, some 500 records: a question that finds few records reads a granule of texts for each.
 * With the usual ten megabytes it took up to half as long again; the table has the same size.
 *
 * It has no TTL: retention removes records when the floors of their chains are signed, and what ClickHouse removed by
 * itself would be missing. The sums of charts stay in the ledger, where they are made in the transaction of the records;
 * the columns of numbers are for other tools.
 *
 * SQL text: another database's own language.
 */
import { facetNames } from '../log/record.ts'

export const recordsTable = 'gatehouse_events'

/** Stands at the table. A release that needs other columns has another number. */
export const schemaComment = 'Gatehouse events, schema 1'

/** Facets with few different values; the others get an index that says which granules cannot have a value. */
const fewValues: ReadonlySet<string> = new Set(['type', 'verdict', 'reason', 'provider', 'status', 'client', 'gateway'])

const facetColumns = facetNames
  .map((facet) => `  ${facet} Array(${fewValues.has(facet) ? 'LowCardinality(String)' : 'String'}) CODEC(ZSTD(1))`)
  .join(',\n')

const facetIndexes = [...facetNames.filter((facet) => !fewValues.has(facet)), 'ids']
  .map((column) => `  INDEX of_${column} ${column} TYPE bloom_filter(0.01) GRANULARITY 2`)
  .join(',\n')

export const clickhouseSchema = `CREATE TABLE IF NOT EXISTS ${recordsTable} (
  position UInt64 CODEC(Delta(8), ZSTD(1)),
  at Int64 CODEC(Delta(8), ZSTD(1)),
  received_at Int64 CODEC(Delta(8), ZSTD(1)),
  time DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(at, 'UTC'),
  chain LowCardinality(String) CODEC(ZSTD(1)),
  seq UInt64 CODEC(Delta(8), ZSTD(1)),
  digest_before String CODEC(ZSTD(1)),
  digest_after String CODEC(ZSTD(1)),
  note String CODEC(ZSTD(1)),
  text String CODEC(ZSTD(6)),
  ids Array(String) CODEC(ZSTD(1)),
${facetColumns},
  requests UInt8 CODEC(ZSTD(1)),
  input_tokens UInt64 CODEC(T64, ZSTD(1)),
  output_tokens UInt64 CODEC(T64, ZSTD(1)),
  cost_nano Int64 CODEC(T64, ZSTD(1)),
  latency_ms UInt32 CODEC(T64, ZSTD(1)),
  INDEX of_position position TYPE minmax GRANULARITY 1,
  INDEX of_received received_at TYPE minmax GRANULARITY 1,
${facetIndexes},
  PROJECTION by_chain (SELECT chain, seq, digest_before, received_at, position, at ORDER BY chain, seq)
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(fromUnixTimestamp64Milli(received_at, 'UTC'))
ORDER BY (at, position)
SETTINGS index_granularity_bytes = 1048576, non_replicated_deduplication_window = 10000,
  deduplicate_merge_projection_mode = 'rebuild', lightweight_mutation_projection_mode = 'rebuild'
COMMENT '${schemaComment}'`
