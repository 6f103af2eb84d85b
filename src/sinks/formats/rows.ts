/** An event as a row of the table that the handbook shows (handbook/sinks.md, "ClickHouse"). */
import type { Item } from '../sink.ts'

export const clickhouseRow = ({ id, at, type, verdict, fields, json }: Item): string =>
  JSON.stringify({
    event_id: id,
    timestamp: new Date(at).toISOString(),
    event_type: type,
    verdict,
    ...fields,
    event: json,
  })
