/** `top`: requests, spend and what is in flight, by model and token, again and again. */
import { defineCommand } from 'citty'
import { Failure } from '../../../src/failure.ts'
import { type Api, createApi } from '../../command/api.ts'
import { connectionFlags, findConnection } from '../../command/profile.ts'
import { ApiRefusal } from '../../command/report.ts'
import type { LiveScreen } from '../../terminal/live-screen.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { type Seen, targetsSchema, todaySchema, topFrame, usedSchema } from './top-frame.ts'

export const top = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Watch requests, spend and what is in flight, by model and token; q ends it' },
    args: {
      since: { type: 'string', default: '1m', description: 'The time it adds up: 1m, 15m, 1h', valueHint: 'TIME' },
      'interval-secs': { type: 'string', description: 'Seconds between two views (default 5)', valueHint: 'N' },
      once: { type: 'boolean', description: 'Print one view and end, as without a terminal' },
      json: { type: 'boolean', description: 'Print one view as JSON' },
      ...connectionFlags,
    },
    async run({ args }) {
      const connection = findConnection(args, terminal)
      const api = createApi(connection, fetch)
      const seconds = Number(args['interval-secs'] ?? 5)
      if (!(Number.isInteger(seconds) && seconds >= 1 && seconds <= 3600)) {
        throw new Failure('usage', { message: '--interval-secs takes a whole number from 1 to 3600' })
      }
      if (args.json) return await terminal.write(`${JSON.stringify(await look(api, args.since))}\n`)
      const titleAt = () =>
        `${terminal.name} top, last ${args.since} at ${connection.apiUrl}, ${new Date().toISOString().slice(11, 19)} UTC`
      const view = async () => topFrame(await look(api, args.since), { title: titleAt() })
      if (args.once || terminal.openScreen === undefined) return await terminal.write(`${(await view()).join('\n')}\n`)
      // What is wrong with the first view ends it before it takes the screen.
      const first = await view()
      const screen = terminal.openScreen()
      try {
        screen.draw(first)
        await redraw(screen, view, seconds)
      } finally {
        screen.close()
      }
    },
  })

/** Until a person ends it. A control plane that is out of reach for a while is waited for, and the view says so. */
async function redraw(screen: LiveScreen, view: () => Promise<string[]>, seconds: number): Promise<void> {
  let isOver = false
  const over = screen.ended.then(() => {
    isOver = true
  })
  for (;;) {
    await Promise.race([over, Bun.sleep(seconds * 1000)])
    if (isOver) return
    const lines = await Promise.race([
      over.then(() => []),
      view().catch((error: unknown) => {
        const passing = error instanceof ApiRefusal ? error.status >= 500 : error instanceof Failure
        if (!passing || !(error instanceof Error)) throw error
        return [`${error.message}; trying again`]
      }),
    ])
    if (isOver) return
    screen.draw(lines)
  }
}

async function look(api: Api, since: string): Promise<Seen> {
  const midnight = `${new Date().toISOString().slice(0, 10)}T00:00:00Z`
  const [used, targets, today] = await Promise.all([
    api.json({ path: '/v1/usage/report', query: { since, by: 'model,token' } }, usedSchema),
    // Calls in flight are for those who may read the catalog.
    api.json({ path: '/v1/catalog/targets' }, targetsSchema).catch((error: unknown) => {
      if (error instanceof ApiRefusal && error.status === 403) return null
      throw error
    }),
    api.json({ path: '/v1/events/series', query: { since: midnight, step: 'day' } }, todaySchema),
  ])
  return { used, targets, today }
}
