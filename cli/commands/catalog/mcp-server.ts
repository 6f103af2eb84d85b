/** The commands about MCP servers: their records, and the approval of what they offer. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { mcpServerResource } from '../../../src/mcp/catalog/server-resource.ts'
import type { Api } from '../../command/api.ts'
import {
  connect,
  pageFlags,
  pageQuery,
  pageSchema,
  readPage,
  recordFlags,
  sendRecord,
  showPage,
} from '../../command/record.ts'
import { idArgument, recordPath, resourceCommands } from '../../command/resource-commands.ts'
import { type Input, processInput } from '../../terminal/input.ts'
import { printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { importServers } from './mcp-import.ts'

export const mcpServerCommands = (terminal: Terminal, input: Input = processInput) =>
  defineCommand({
    meta: { description: mcpServerResource.about },
    subCommands: {
      ...resourceCommands(mcpServerResource, terminal, { input }),
      import: () => importServers(terminal, input),
      tools: () => tools(terminal),
      changes: () => changes(terminal),
      approve: () => decide('approve', terminal),
      dismiss: () => decide('dismiss', terminal),
      withdraw: () => withdraw(terminal),
    },
  })

const tools = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'List what a server offers, approved or held' },
    args: { ...idArgument, ...pageFlags, ...recordFlags },
    async run({ args }) {
      const path = `${recordPath(mcpServerResource, args.id)}/offers`
      const page = await readPage(
        connect(args, terminal),
        { path, query: pageQuery(args) },
        { of: 'offers', all: args.all },
      )
      const fields = ['status', 'kind', 'name', 'digest', 'first_seen_at', 'dismissed_at', 'misfit']
      await showPage(page, { of: 'offers', fields, json: args.json, terminal })
    },
  })

const changes = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Show what is held, and how it differs from what was approved' },
    args: { ...idArgument, ...recordFlags },
    async run({ args }) {
      const offers = await offersOf(connect(args, terminal), `${recordPath(mcpServerResource, args.id)}/offers`)
      const held = [...newestOf(offers).values()].filter(({ status }) => status === 'held')
      if (args.json) await terminal.write(`${JSON.stringify({ changes: held })}\n`)
      else if (held.length === 0) terminal.note('Nothing is held')
      else await terminal.write(held.map(changeText).join('\n'))
    },
  })

function changeText({ kind, name, digest, misfit, dismissed_at: dismissedAt, changes }: Offer): string {
  const head = `${changes ? 'changed' : 'new'} ${kind} ${printable(name)} ${digest}\n`
  const fault = misfit ? `  it cannot be approved: ${printable(misfit)}\n` : ''
  const dismissal = dismissedAt ? `  it was dismissed at ${dismissedAt}\n` : ''
  const lines = (changes ?? []).map(({ path, before, after }) =>
    [
      `  ${printable(path)}\n`,
      ...(before === null ? [] : [`    - ${printable(before)}\n`]),
      ...(after === null ? [] : [`    + ${printable(after)}\n`]),
    ].join(''),
  )
  return `${head}${fault}${dismissal}${lines.join('')}`
}

const decisions = {
  approve: {
    about: 'Approve what a server offers: one definition by its digest, or everything that waits',
    done: 'approved',
    fits: ({ misfit }: Offer) => !misfit,
  },
  dismiss: {
    about: 'Dismiss what is held: it stays held and is announced no longer, until the server changes it',
    done: 'dismissed',
    fits: () => true,
  },
} as const

const decide = (decision: keyof typeof decisions, terminal: Terminal) => {
  const { about, done, fits } = decisions[decision]
  return defineCommand({
    meta: { description: about },
    args: {
      ...idArgument,
      digest: { type: 'string', description: 'The digest of the definition, as `tools` shows it', valueHint: 'DIGEST' },
      held: { type: 'boolean', description: 'The newest definition of everything that is held and not dismissed' },
      ...recordFlags,
    },
    async run({ args }) {
      if ((args.digest === undefined) === (args.held !== true)) {
        throw new Failure('usage', { message: 'Use either --digest or --held' })
      }
      const api = connect(args, terminal)
      const path = `${recordPath(mcpServerResource, args.id)}/offers`
      const offers = await offersOf(api, path)
      const chosen = args.held ? waitingIn(offers).filter(fits) : offers.filter(({ digest }) => digest === args.digest)
      if (chosen.length === 0 && args.digest !== undefined) throw unseen()
      for (const { kind, name, digest } of chosen) {
        await api.json({ method: 'POST', path: `${path}/${decision}`, body: { kind, name, digest } }, z.looseObject({}))
        if (!args.json) await terminal.write(`${done} ${kind} ${printable(name)} ${digest}\n`)
      }
      if (args.json) await terminal.write(`${JSON.stringify({ [done]: chosen })}\n`)
      else if (chosen.length === 0) terminal.note(`There is nothing to ${decision}`)
    },
  })
}

const withdraw = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Withdraw the approval of one definition; it is held from then on' },
    args: {
      ...idArgument,
      digest: {
        type: 'string',
        required: true,
        description: 'The digest of the definition, as `tools` shows it',
        valueHint: 'DIGEST',
      },
      ...recordFlags,
    },
    async run({ args }) {
      const api = connect(args, terminal)
      const path = `${recordPath(mcpServerResource, args.id)}/offers`
      const [body] = (await offersOf(api, path)).filter(({ digest }) => digest === args.digest)
      if (body === undefined) throw unseen()
      const { kind, name, digest } = body
      await sendRecord({ method: 'POST', path: `${path}/withdraw`, body: { kind, name, digest } }, args, terminal)
    },
  })

const unseen = () =>
  new Failure('not_found', { message: 'The server was not seen to offer a definition of this digest' })

const offerSchema = z.object({
  kind: z.string(),
  name: z.string(),
  digest: z.string(),
  status: z.string(),
  misfit: z.string().nullish(),
  dismissed_at: z.string().nullish(),
  changes: z
    .array(z.object({ path: z.string(), before: z.string().nullable(), after: z.string().nullable() }))
    .nullish(),
})
type Offer = z.infer<typeof offerSchema>

/** In the order in which they were seen. */
async function offersOf(api: Api, path: string): Promise<Offer[]> {
  const found: Offer[] = []
  let cursor: string | undefined
  do {
    const page = await api.json({ path, query: { cursor } }, pageSchema)
    found.push(...z.array(offerSchema).parse(page.offers))
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  return found
}

/** A definition that was replaced by an approved one later on stays behind. */
const newestOf = (offers: readonly Offer[]): Map<string, Offer> =>
  new Map(offers.map((offer) => [`${offer.kind} ${offer.name}`, offer]))

/** The newest definitions about which nobody has decided. */
const waitingIn = (offers: readonly Offer[]): Offer[] =>
  [...newestOf(offers).values()].filter(({ status, dismissed_at }) => status === 'held' && !dismissed_at)
