/** `master-key`: rotates the key that seals secrets, while everything runs. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../src/failure.ts'
import { type Api, createApi } from '../command/api.ts'
import { connectionFlags, findConnection } from '../command/profile.ts'
import { confirmAtTerminal } from '../terminal/confirm.ts'
import type { Terminal } from '../terminal/terminal.ts'

const stateSchema = z.object({
  source: z.enum(['file', 'setting']),
  rotation: z.enum(['none', 'ready', 'running', 'complete']),
  resealed: z.number(),
})
type State = z.infer<typeof stateSchema>

const path = '/v1/master-key'
const askAgainMs = 1000
/** A rotation takes some ten seconds, with keys of settings a minute, and longer with very many people. */
const longestMs = 600_000

const args = { ...connectionFlags, json: { type: 'boolean', description: 'Print JSON' } } as const

export const masterKey = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Rotate the master key, which seals the secrets of the ledger' },
    subCommands: { rotate: async () => rotate(terminal), status: async () => status(terminal) },
  })

const status = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Say how far a rotation of the master key is' },
    args,
    async run({ args }) {
      const api = createApi(findConnection(args, terminal), fetch)
      await show(terminal, args.json === true, await api.json({ path }, stateSchema))
    },
  })

const rotate = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Seal every secret under the next master key, while control planes and gateways run' },
    args: { ...args, yes: { type: 'boolean', description: 'At a terminal: do not ask first' } },
    async run({ args }) {
      const api = createApi(findConnection(args, terminal), fetch)
      await confirmAtTerminal(
        args.yes,
        'This seals every secret anew, after which older backups need the former key',
        terminal,
      )
      const begun = await api.json({ method: 'POST', path: `${path}/rotate`, body: {} }, stateSchema)
      terminal.note('The rotation has begun. It goes on by itself, also after a restart')
      await show(terminal, args.json === true, await ended(api, begun))
    },
  })

async function ended(api: Api, begun: State): Promise<State> {
  const until = Date.now() + longestMs
  for (let state = begun; Date.now() < until; state = await api.json({ path }, stateSchema)) {
    if (state.rotation === 'none' || state.rotation === 'complete') return state
    await Bun.sleep(askAgainMs)
  }
  throw new Failure('unhealthy', { message: 'The rotation still runs: see its log, and master-key status' })
}

const said: Record<State['rotation'], string> = {
  none: 'There is one master key, and no rotation runs',
  ready: 'The next master key is there: begin with master-key rotate',
  running: 'Secrets are being sealed under the next master key',
  complete:
    'Nothing is left under the former master key: start every control plane with the next one as SERVICE_MASTER_KEY, without SERVICE_MASTER_KEY_NEXT',
}

async function show(terminal: Terminal, json: boolean, state: State): Promise<void> {
  if (json) return await terminal.write(`${JSON.stringify(state)}\n`)
  await terminal.write(`${said[state.rotation]}\n`)
  if (state.resealed > 0) await terminal.write(`${state.resealed} secrets were sealed anew\n`)
  if (state.rotation === 'none' && state.resealed > 0 && state.source === 'file') {
    terminal.note('Former keys are in the file master-key-former: older backups need them. Make a new backup now')
  }
}
