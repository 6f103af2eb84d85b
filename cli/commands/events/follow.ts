/**
 * `events tail --follow` (cli/README.md): reads the window, all its pages, oldest first, then what arrives, in the order
 * of arrival. The control plane's cursors say where to go on, so that each event is shown once, however late it comes.
 */
import { Failure } from '../../../src/failure.ts'
import type { Api } from '../../command/api.ts'
import { ApiRefusal } from '../../command/report.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { eventPageSchema, type ListedEvent } from './event-line.ts'

export interface Following {
  api: Api
  query: Readonly<Record<string, string | undefined>>
  /** Called before new events are printed. */
  prepare?(events: readonly ListedEvent[]): Promise<void>
  print(event: ListedEvent): string
  terminal: Pick<Terminal, 'write' | 'note'>
  /** Waits until the next poll is due; its rejection ends the following. */
  sleep(): Promise<void>
}

/** Follows until something fails for good. A control plane that is out of reach for a while is waited for. */
export async function followEvents({ api, query, prepare, print, terminal, sleep }: Following): Promise<never> {
  const read = (cursor: string | undefined) =>
    api.json({ path: '/v1/events', query: { ...query, order: 'oldest', cursor } }, eventPageSchema)
  let page = await read(query.cursor)
  for (;;) {
    const { events, next_cursor, follow } = page
    await prepare?.(events)
    if (events.length > 0) await terminal.write(events.map((event) => `${print(event)}\n`).join(''))
    if (next_cursor === null) await sleep()
    page = await readPatiently(() => read(next_cursor ?? follow), terminal, sleep)
  }
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
