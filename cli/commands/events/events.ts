/** `events tail` and `events export` (cli/README.md). */
import { defineCommand } from 'citty'
import { Failure } from '../../../src/failure.ts'
import { type Api, createApi } from '../../command/api.ts'
import { nameBook } from '../../command/name-book.ts'
import { connectionFlags, findConnection } from '../../command/profile.ts'
import { writeBody } from '../../command/stream.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { eventLine, eventPageSchema, type ListedEvent, learnNames, wideEventLine } from './event-line.ts'
import { filterFlags, filterQuery, filterReferences, withFilterIds } from './filter-flags.ts'
import { followEvents } from './follow.ts'

export const events = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Read, export and verify events' },
    subCommands: {
      tail: async () => tail(terminal),
      sessions: async () => (await import('./sessions.ts')).sessions(terminal),
      export: async () => exportEvents(terminal),
      verify: async () => (await import('./verify.ts')).verify(terminal),
      'rebuild-rollups': async () => (await import('./rebuild-rollups.ts')).rebuildRollups(terminal),
    },
  })

const sinceFlag = {
  since: {
    type: 'string',
    required: true,
    description: 'From when: RFC 3339, or a number and m, h, d or w',
    valueHint: '15m',
  },
} as const

const tail = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Show a page of events, newest first by timestamp' },
    args: {
      ...sinceFlag,
      limit: { type: 'string', description: 'Events on a page, 1 to 100 (default 100)', valueHint: 'N' },
      order: { type: 'enum', options: ['newest', 'oldest'], description: 'Which events come first (default newest)' },
      cursor: { type: 'string', description: 'Continue after the last page' },
      ...filterFlags,
      follow: { type: 'boolean', description: 'Show the whole window, oldest first, then what arrives' },
      'follow-interval-secs': { type: 'string', description: 'Seconds between polls (default 5)', valueHint: 'N' },
      wide: {
        type: 'boolean',
        description:
          'Show timestamp, type, verdict, status, latency, cost in US dollars, token, model, policies, reason',
      },
      json: { type: 'boolean', description: 'Print JSON; with --follow one object an event' },
      ...connectionFlags,
    },
    async run({ args }) {
      const seconds = whole('--follow-interval-secs', args['follow-interval-secs'] ?? '5', 1, 86_400)
      const sleep = () => Bun.sleep(seconds * 1000)
      const api = createApi(findConnection(args, terminal), fetch)
      const limit = args.limit === undefined ? undefined : whole('--limit', args.limit, 1, 100)
      const query = {
        since: args.since,
        limit: limit === undefined ? undefined : String(limit),
        order: args.order,
        cursor: args.cursor,
        ...filterQuery(args),
      }
      if (args.follow && args.order !== undefined) {
        throw new Failure('invalid_parameter', { message: '--follow shows events as they arrive: leave --order out' })
      }
      const names = nameBook(api)
      const prepare = (events: readonly ListedEvent[]) => (args.wide ? learnNames(events, names) : Promise.resolve())
      const line = (event: ListedEvent) => (args.wide ? wideEventLine(event, names.nameOf, terminal) : eventLine(event))
      if (args.follow) {
        const following = { api, query: await withFilterIds(query, api), terminal, sleep }
        return followEvents(
          args.json
            ? { ...following, print: (event) => JSON.stringify(event) }
            : { ...following, prepare, print: line },
        )
      }
      const page = await readPage(api, query, limit ?? 100)
      if (args.json) return terminal.write(`${JSON.stringify(page)}\n`)
      if (page.events.length === 0) return terminal.write('No events found\n')
      await prepare(page.events)
      await terminal.write(page.events.map((event) => `${line(event)}\n`).join(''))
      if (page.next_cursor !== null) terminal.note(`More: add --cursor ${page.next_cursor}`)
    },
  })

/** A page. The control plane ends one early that takes it long; the rest is asked for. */
async function readPage(api: Api, query: Record<string, string | undefined>, limit: number) {
  const read = (more: Record<string, string>) =>
    api.json({ path: '/v1/events', query: { ...query, ...more }, references: filterReferences }, eventPageSchema)
  const page = await read({})
  while (page.next_cursor !== null && page.events.length < limit) {
    const next = await read({ cursor: page.next_cursor, limit: String(limit - page.events.length) })
    page.events.push(...next.events)
    page.next_cursor = next.next_cursor
  }
  return page
}

const exportEvents = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Write all events from a time until now, oldest first by timestamp' },
    args: {
      ...sinceFlag,
      format: { type: 'enum', options: ['csv', 'json'], required: true, description: 'The format' },
      columns: {
        type: 'string',
        description:
          'More columns of CSV, with commas between them: time, verdict, reason, model, token, team, user, provider, tokens, cost, status, first_token, latency, policy',
        valueHint: 'LIST',
      },
      'only-columns': { type: 'boolean', description: 'CSV with the columns that --columns names and no other' },
      ...filterFlags,
      ...connectionFlags,
    },
    async run({ args }) {
      const api = createApi(findConnection(args, terminal), fetch)
      const query = {
        ...{ since: args.since, format: args.format, columns: args.columns },
        ...{ only_columns: args['only-columns'] === true ? 'true' : undefined },
        ...filterQuery(args),
      }
      const answer = await api.response({ path: '/v1/events/export', query, references: filterReferences })
      const shown = exportProgress(terminal)
      await writeBody(answer, terminal, shown.at)
      shown.done()
    },
  })

const shownEveryBytes = 256 * 1024

/** How much has been written, where somebody watches. */
function exportProgress(terminal: Terminal): { at(bytes: number): void; done(): void } {
  let written = 0
  let shown = 0
  const show = () => terminal.progress?.(`${(written / 1_000_000).toFixed(1)} MB`)
  return {
    at(bytes) {
      written = bytes
      if (bytes - shown < shownEveryBytes) return
      shown = bytes
      show()
    },
    done() {
      if (terminal.progress === undefined) return
      show()
      terminal.note('')
    },
  }
}

function whole(flag: string, text: string, minimum: number, maximum: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= minimum && value <= maximum)) {
    throw new Failure('usage', { message: `${flag} takes a whole number from ${minimum} to ${maximum}` })
  }
  return value
}
