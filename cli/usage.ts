/** `usage accounts|lanes|release|excesses|forget-excess|resume`. */
import { Failure } from '../src/failure.ts'
import { command, type Group, type Leaf } from './command.ts'
import { connect, pageFlags, pageQuery, pageSchema, recordFlags, sendRecord, showPage } from './record.ts'
import type { Terminal } from './terminal.ts'

export const usage = (terminal: Terminal): Group => ({
  about: 'Show what is used of limits, and free what lost gateways hold',
  commands: {
    accounts: async () => accounts(terminal),
    lanes: async () => lanes(terminal),
    release: async () => release(terminal),
    excesses: async () => excesses(terminal),
    'forget-excess': async () => forgetExcess(terminal),
    resume: async () => resume(terminal),
  },
})

const accounts = (terminal: Terminal): Leaf =>
  command({
    about: 'List what is used and held of each limit',
    args: {
      prefix: { type: 'string', description: 'Only accounts whose names begin so, such as token/<id>' },
      ...pageFlags,
      ...recordFlags,
    },
    async run(flags) {
      const { prefix, json } = flags
      const request = { path: '/v1/usage/accounts', query: { prefix, ...pageQuery(flags) } }
      const page = await connect(flags, terminal).json(request, pageSchema)
      await showPage(page, { of: 'accounts', fields: ['account', 'settled', 'held', 'lanes'], json, terminal })
    },
  })

const lanes = (terminal: Terminal): Leaf =>
  command({
    about: 'List the lanes of gateways and what they hold',
    args: { ...pageFlags, ...recordFlags },
    async run(flags) {
      const { json } = flags
      const page = await connect(flags, terminal).json({ path: '/v1/usage/lanes', query: pageQuery(flags) }, pageSchema)
      await showPage(page, {
        of: 'lanes',
        fields: ['lane', 'last_beat_at', 'lost_at', 'released_at', 'awaited'],
        json,
        terminal,
      })
    },
  })

const release = (terminal: Terminal): Leaf =>
  command({
    about: 'Free what a lost lane holds; a lane that is released never comes back',
    args: {
      lane: { type: 'positional', description: "The lane's name, as `usage lanes` shows it" },
      yes: { type: 'boolean', description: 'Really release it; there is no way back' },
      ...recordFlags,
    },
    async run(flags) {
      if (!flags.yes) {
        throw new Failure('usage', { message: 'Releasing cannot be undone: repeat the command with --yes' })
      }
      await sendRecord({ method: 'POST', path: '/v1/usage/release', body: { lane: flags.lane } }, flags, terminal)
    },
  })

const excesses = (terminal: Terminal): Leaf =>
  command({
    about: 'List what providers charged beyond the most that a request could cost by their list prices',
    args: { ...recordFlags },
    async run(flags) {
      const page = await connect(flags, terminal).json({ path: '/v1/usage/excesses' }, pageSchema)
      const fields = ['provider_id', 'model', 'excess', 'at']
      await showPage(page, { of: 'excesses', fields, json: flags.json, terminal })
    },
  })

const forgetExcess = (terminal: Terminal): Leaf =>
  command({
    about: 'Stop adding what a provider once charged beyond its list price to the bounds of requests',
    args: {
      provider: { type: 'positional', description: "The provider's id, as `usage excesses` shows it" },
      model: { type: 'positional', description: 'The model, as `usage excesses` shows it' },
      ...recordFlags,
    },
    async run(flags) {
      const body = { provider_id: flags.provider, model: flags.model }
      await sendRecord({ method: 'POST', path: '/v1/usage/forget-excess', body }, flags, terminal)
    },
  })

const resume = (terminal: Terminal): Leaf =>
  command({
    about: 'Grant again from a restored ledger, without waiting for lanes that have not said what they hold',
    args: {
      yes: { type: 'boolean', description: 'Really: what those lanes hold may then be spent twice' },
      ...recordFlags,
    },
    async run(flags) {
      if (!flags.yes) {
        throw new Failure('usage', { message: 'Limits may be passed if those lanes come back: repeat it with --yes' })
      }
      await sendRecord({ method: 'POST', path: '/v1/usage/resume', body: {} }, flags, terminal)
    },
  })
