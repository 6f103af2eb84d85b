/** `usage accounts|rates|lanes|release|reopen|resume`. */
import { Failure } from '../src/failure.ts'
import { command, type Group, type Leaf } from './command.ts'
import { connect, pageFlags, pageQuery, pageSchema, recordFlags, sendRecord, showPage } from './record.ts'
import type { Terminal } from './terminal.ts'

export const usage = (terminal: Terminal): Group => ({
  about: 'Show what is used of limits, and free what lost gateways hold',
  commands: {
    accounts: async () => accounts(terminal),
    rates: async () => rates(terminal),
    lanes: async () => lanes(terminal),
    release: async () => release(terminal),
    reopen: async () => reopen(terminal),
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

const rates = (terminal: Terminal): Leaf =>
  command({
    about: 'List what gateways hold of each limit a minute, and until when absent ones do',
    args: {
      prefix: { type: 'string', description: 'Only limits whose names begin so, such as token/<id>' },
      ...pageFlags,
      ...recordFlags,
    },
    async run(flags) {
      const { prefix, json } = flags
      const request = { path: '/v1/usage/rates', query: { prefix, ...pageQuery(flags) } }
      const page = await connect(flags, terminal).json(request, pageSchema)
      const fields = ['account', 'held', 'resting', 'absent', 'absent_until']
      await showPage(page, { of: 'rates', fields, json, terminal })
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

const reopen = (terminal: Terminal): Leaf =>
  command({
    about: 'Grant again from an account that was closed because a gateway claimed too much of it',
    args: {
      account: { type: 'positional', description: 'The account, as `usage accounts` shows it' },
      ...recordFlags,
    },
    async run(flags) {
      await sendRecord({ method: 'POST', path: '/v1/usage/reopen', body: { account: flags.account } }, flags, terminal)
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
