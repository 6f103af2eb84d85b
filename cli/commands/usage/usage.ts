/** `usage costs|report|reconcile|accounts|rates|workers|release|excesses|forget-excess|resume`. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { decimalOf } from '../../../src/lib/money.ts'
import { readAccountName } from '../../../src/usage/account-name.ts'
import {
  connect,
  pageFlags,
  pageQuery,
  pageSchema,
  readPage,
  recordFlags,
  sendRecord,
  showPage,
  showRecord,
} from '../../command/record.ts'
import { listOf } from '../../command/resource-commands.ts'
import { confirm } from '../../terminal/confirm.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const usage = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Show how much of each limit is used, and free what lost gateways hold' },
    subCommands: {
      costs: async () => (await import('./costs.ts')).costs(terminal),
      report: async () => (await import('./report.ts')).report(terminal),
      reconcile: async () => (await import('./reconcile.ts')).reconcile(terminal),
      accounts: async () => accounts(terminal),
      rates: async () => listOf(rates, terminal),
      workers: async () => listOf(workers, terminal),
      release: async () => release(terminal),
      excesses: async () => excesses(terminal),
      'forget-excess': async () => forgetExcess(terminal),
      resume: async () => resume(terminal),
    },
  })

const accounts = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'List how much of each limit is used and held' },
    args: {
      prefix: { type: 'string', description: 'Only accounts whose names begin with it, such as token/ID' },
      ...pageFlags,
      ...recordFlags,
    },
    async run({ args }) {
      const { prefix, json } = args
      const request = { path: '/v1/usage/accounts', query: { prefix, ...pageQuery(args) } }
      const page = accountsSchema.parse(
        await readPage(connect(args, terminal), request, { of: 'accounts', all: args.all }),
      )
      const accounts = json ? page.accounts : page.accounts.map(readable)
      const fields = ['account', 'unit', 'settled', 'held', 'workers']
      await showPage({ ...page, accounts }, { of: 'accounts', fields, json, terminal })
    },
  })

const accountsSchema = z.looseObject({
  ...pageSchema.shape,
  accounts: z.array(z.looseObject({ account: z.string(), settled: z.number(), held: z.number() })),
})

/** An account with its unit, and its amounts in that: the API says them in nano-dollars where they are money. */
function readable<Account extends { account: string; settled: number; held: number }>(account: Account) {
  const unit = unitOf(account.account)
  return { ...account, unit, settled: amountIn(unit, account.settled), held: amountIn(unit, account.held) }
}

type Unit = 'USD' | 'requests'

function unitOf(account: string): Unit {
  const kind = readAccountName(account)?.kind
  return kind === 'money' || kind === 'budget' ? 'USD' : 'requests'
}

const amountIn = (unit: Unit, amount: number): string => (unit === 'USD' ? decimalOf(amount) : String(amount))

const rates = {
  path: '/v1/usage/rates',
  plural: 'rates',
  columns: ['account', 'held', 'resting', 'absent', 'absent_until'],
  filters: z.object({
    prefix: z.string().describe('Only limits whose names begin with it, such as token/ID').optional(),
  }),
  summaries: { list: 'List what gateways hold of each limit a minute, and until when absent ones hold it' },
}

const workers = {
  path: '/v1/usage/workers',
  plural: 'workers',
  columns: ['worker', 'last_heartbeat_at', 'lost_at', 'released_at', 'pending_reconciliation'],
  summaries: { list: 'List the workers of gateways and what they hold' },
}

const release = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Free what a lost worker holds; a worker that is released never comes back' },
    args: {
      worker: { type: 'positional', required: true, description: "The worker's name, as `usage workers` shows it" },
      yes: { type: 'boolean', description: 'Confirm: this cannot be undone' },
      ...recordFlags,
    },
    async run({ args }) {
      await confirm(args.yes, `This releases ${args.worker}, which cannot be undone`, terminal)
      const request = { method: 'POST', path: '/v1/usage/release', body: { worker: args.worker } } as const
      const released = await connect(args, terminal).json(request, releasedSchema)
      const held = released.held.map(({ account, amount }) => `${account} ${withUnit(account, amount)}`)
      await showRecord(args.json ? released : { ...released, held: held.join(', ') }, args.json, terminal)
    },
  })

const releasedSchema = z.looseObject({ held: z.array(z.object({ account: z.string(), amount: z.number() })) })

const withUnit = (account: string, amount: number): string => {
  const unit = unitOf(account)
  return `${amountIn(unit, amount)} ${unit}`
}

const excesses = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'List what providers charged beyond the most that a request could cost by their list prices' },
    args: { ...recordFlags },
    async run({ args }) {
      const page = await connect(args, terminal).json({ path: '/v1/usage/excesses' }, pageSchema)
      const fields = ['provider', 'model', 'excess', 'at']
      await showPage(page, { of: 'excesses', fields, json: args.json, terminal })
    },
  })

const forgetExcess = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Stop adding what a provider once charged beyond its list price to the bounds of requests' },
    args: {
      provider: { type: 'positional', required: true, description: "The provider's id or name" },
      model: { type: 'positional', required: true, description: 'The model, as `usage excesses` shows it' },
      ...recordFlags,
    },
    async run({ args }) {
      const body = { provider_id: args.provider, model: args.model }
      await sendRecord(
        { method: 'POST', path: '/v1/usage/forget-excess', body, references: { provider_id: '/v1/catalog/providers' } },
        args,
        terminal,
      )
    },
  })

const resume = (terminal: Terminal) =>
  defineCommand({
    meta: {
      description:
        'Grant leases again after a restore, without waiting for workers that have not reported what they hold',
    },
    args: {
      yes: { type: 'boolean', description: 'Confirm: what those workers hold may be spent twice' },
      ...recordFlags,
    },
    async run({ args }) {
      await confirm(args.yes, 'Limits may be passed if those workers come back', terminal)
      await sendRecord({ method: 'POST', path: '/v1/usage/resume', body: {} }, args, terminal)
    },
  })
