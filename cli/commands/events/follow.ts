/**
 * `events tail --follow` (cli/README.md): reads the window, all its pages, then polls. The newest timestamp
 * seen is the next lower bound, which is inclusive, so the events at that timestamp come again and are left out by id.
 * Events that arrive later with an older timestamp are missed: the lower bound has passed them.
 *
 * While nothing was seen the window begins where it did at first, by the control plane's clock: said anew before each
 * poll, a `since` like `5m` would move past what arrives between two polls.
 *
 * Each round is printed oldest first, so the whole reads in one direction; a round is held in memory for that.
 */
import { sinceInstant } from '../../../src/events/query/since.ts'
import { Failure } from '../../../src/failure.ts'
import type { Api, ApiRequest } from '../../command/api.ts'
import { ApiRefusal } from '../../command/report.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { eventPageSchema, type ListedEvent } from './event-line.ts'

export interface Following {
  api: Api
  /** The first round's query; `since` is replaced in those that follow. */
  query: Readonly<Record<string, string | undefined>>
  print(event: ListedEvent): string
  terminal: Pick<Terminal, 'write' | 'note'>
  /** Waits until the next poll is due; its rejection ends the following. */
  sleep(): Promise<void>
}

/** Follows until something fails for good. A control plane that is out of reach for a while is waited for. */
export async function followEvents({ api, query, print, terminal, sleep }: Following): Promise<never> {
  let newest: { timestamp: string; ids: ReadonlySet<string> } | null = null
  let start = query.since
  let round = await readWindow(api, query, (headers) => {
    start = beginning(query.since, headers)
  })
  for (;;) {
    const seen: ReadonlySet<string> = newest?.ids ?? new Set()
    const fresh = round.filter(({ event_id }) => !seen.has(event_id))
    if (fresh.length > 0) await terminal.write(fresh.map((event) => `${print(event)}\n`).join(''))
    newest = advance(newest, round)
    await sleep()
    const { cursor: _, ...window } = query
    const next = { ...window, since: newest?.timestamp ?? start }
    round = await readPatiently(() => readWindow(api, next), terminal, sleep)
  }
}

/** All pages of a window, oldest first. */
async function readWindow(
  api: Api,
  query: Following['query'],
  onHeaders: ApiRequest['onHeaders'] = () => undefined,
): Promise<ListedEvent[]> {
  const newestFirst: ListedEvent[] = []
  let cursor = query.cursor
  for (;;) {
    const page = await api.json({ path: '/v1/events', query: { ...query, cursor }, onHeaders }, eventPageSchema)
    for (const event of page.events) newestFirst.push(event)
    if (page.next_cursor === null) return newestFirst.reverse()
    cursor = page.next_cursor
  }
}

/**
 * The instant at which a window begins that was just read; as it was said where the answer does not tell when that was.
 */
function beginning(since: string | undefined, headers: Headers): string | undefined {
  const now = Date.parse(headers.get('date') ?? '')
  if (since === undefined || Number.isNaN(now)) return since
  return new Date(sinceInstant(since, now)).toISOString()
}

function advance(
  newest: { timestamp: string; ids: ReadonlySet<string> } | null,
  round: readonly ListedEvent[],
): { timestamp: string; ids: ReadonlySet<string> } | null {
  // A window is read newest first and turned round.
  const timestamp = round.at(-1)?.timestamp
  if (timestamp === undefined || (newest && timestamp < newest.timestamp)) return newest
  const ids = round.filter((event) => event.timestamp === timestamp).map((event) => event.event_id)
  return { timestamp, ids: new Set(newest?.timestamp === timestamp ? [...newest.ids, ...ids] : ids) }
}

async function readPatiently<Result>(
  read: () => Promise<Result>,
  terminal: Following['terminal'],
  sleep: () => Promise<void>,
): Promise<Result> {
  for (;;) {
    try {
      return await read()
    } catch (error) {
      const passing =
        error instanceof ApiRefusal ? error.status >= 500 : error instanceof Failure && error.code === 'api_unreachable'
      if (!passing || !(error instanceof Error)) throw error
      terminal.note(`${error.message}; trying again`)
      await sleep()
    }
  }
}
