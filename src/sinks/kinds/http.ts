/**
 * Receivers over HTTP, each with its form of a body: lines of JSON for any (`http`), Splunk's HTTP Event Collector,
 * Datadog's log intake (v2) and rows of ClickHouse. Bodies are compressed by gzip.
 */
import { clickhouseRow } from '../formats/rows.ts'
import type { Item, Parcel, Receiver, ReceiverTools, Sink, SinkKind } from '../sink.ts'
import { authorization, beginning, gzipped, joined, post } from './post.ts'

const second = 1000
const megabyte = 1_000_000

/** A receiver that gets each parcel as one body. */
function receiver(
  sink: Sink,
  tools: ReceiverTools,
  form: {
    url(parcel: Parcel): string
    contentType: string
    headers: Readonly<Record<string, string>>
    body(parcel: Parcel): Promise<string>
  },
): Receiver {
  return {
    async send(parcel, signal) {
      const headers = { 'content-type': form.contentType, 'content-encoding': 'gzip', ...form.headers }
      const body = await gzipped(await form.body(parcel))
      await beginning(await post(sink, tools, { url: form.url(parcel), headers, body }, signal))
    },
    close: async () => undefined,
  }
}

export const http: SinkKind = {
  formats: ['records', 'events', 'ocsf'],
  proves: 'line',
  schemes: { tls: 'https', plain: 'http' },
  needs: [],
  most: { items: 5000, bytes: 4 * megabyte },
  restMilliseconds: () => second,
  open: (sink, tools) =>
    receiver(sink, tools, {
      url: () => sink.url,
      contentType: 'application/x-ndjson',
      headers: authorization(sink.credentials),
      async body({ items, proof }) {
        const lines = await joined(items, ({ json }) => `${json}\n`, '')
        return proof === null ? lines : `${lines}${proof}\n`
      },
    }),
}

/** Splunk, "Format events for HTTP Event Collector": objects one after another. `time` is in seconds. */
export const splunk: SinkKind = {
  formats: ['events', 'ocsf', 'records'],
  proves: false,
  schemes: { tls: 'https', plain: 'http' },
  own: 'splunk',
  needs: ['token'],
  most: { items: 2000, bytes: 2 * megabyte },
  restMilliseconds: () => second,
  open(sink, tools) {
    const { index, source = 'gatehouse', sourcetype = '_json' } = sink.config.splunk ?? {}
    const of = JSON.stringify({ source, sourcetype, ...(index === undefined ? {} : { index }) }).slice(1, -1)
    return receiver(sink, tools, {
      url: () => sink.url,
      contentType: 'application/json',
      headers: { authorization: `Splunk ${sink.credentials.token ?? ''}` },
      body: ({ items }) =>
        joined(items, ({ at, json }) => `{"time":${(at / second).toFixed(3)},${of},"event":${json}}`, '\n'),
    })
  },
}

/** Datadog, "Send logs" (v2): at most 1000 logs and 5 MB at once. */
export const datadog: SinkKind = {
  formats: ['events', 'ocsf', 'records'],
  proves: false,
  schemes: { tls: 'https', plain: 'http' },
  own: 'datadog',
  needs: ['token'],
  most: { items: 1000, bytes: 4 * megabyte },
  restMilliseconds: () => second,
  open(sink, tools) {
    const { service = 'gatehouse', tags } = sink.config.datadog ?? {}
    const of = JSON.stringify({ ddsource: 'gatehouse', service, ...(tags === undefined ? {} : { ddtags: tags }) })
    return receiver(sink, tools, {
      url: () => sink.url,
      contentType: 'application/json',
      headers: { 'dd-api-key': sink.credentials.token ?? '' },
      async body({ items }) {
        const log = ({ at, json, verdict }: Item) => {
          const status = verdict === 'allow' ? 'info' : 'warn'
          return `${of.slice(0, -1)},"timestamp":${at},"status":"${status}","message":${JSON.stringify(json)}}`
        }
        return `[${await joined(items, log, ',')}]`
      },
    })
  },
}

/**
 * Rows of a table by ClickHouse's HTTP interface. A parcel that comes twice has the same token, by which a replicated
 * table leaves the second one out; elsewhere ReplacingMergeTree does, by the event's id.
 */
export const clickhouse: SinkKind = {
  formats: ['events'],
  proves: false,
  schemes: { tls: 'https', plain: 'http' },
  own: 'clickhouse',
  needs: [],
  most: { items: 5000, bytes: 4 * megabyte },
  restMilliseconds: () => second,
  open(sink, tools) {
    const { database = 'default', table = 'gatehouse_events' } = sink.config.clickhouse ?? {}
    const { username, password } = sink.credentials
    return receiver(sink, tools, {
      url({ first, next, items }) {
        const url = new URL(sink.url)
        url.search = new URLSearchParams({
          query: `INSERT INTO "${database}"."${table}" FORMAT JSONEachRow`,
          date_time_input_format: 'best_effort',
          insert_deduplication_token: `${sink.id}-${first}-${next}-${items.length}`,
        }).toString()
        return url.href
      },
      contentType: 'application/x-ndjson',
      headers: {
        ...(username === undefined ? {} : { 'x-clickhouse-user': username }),
        ...(password === undefined ? {} : { 'x-clickhouse-key': password }),
      },
      body: ({ items }) => joined(items, clickhouseRow, '\n'),
    })
  },
}
