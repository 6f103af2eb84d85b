/**
 * `apply -f FILE` changes an installation to match a file. Each record is identified by its name: a missing one is
 * created, a different one is changed, and fields that the file leaves out become those of a new record, except
 * secrets. Nothing else is touched, unless `--prune` asks to delete records that a list of the file does not name.
 * All entries are checked, by the API's own rules, before anything is changed.
 */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { asFailure, Failure } from '../../../src/failure.ts'
import type { Api } from '../../command/api.ts'
import { connect, pageSchema, recordFlags } from '../../command/record.ts'
import { ApiRefusal } from '../../command/report.ts'
import { readStructuredFile } from '../../command/settings.ts'
import { printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { identityProviders } from './apply-identity-providers.ts'
import type { ApplyKind, Changes, Present } from './apply-kind.ts'
import { managedSettings } from './apply-managed-settings.ts'
import { mcpServers } from './apply-mcp-servers.ts'
import { models } from './apply-models.ts'
import { policies } from './apply-policies.ts'
import { providers } from './apply-providers.ts'

interface Step {
  readonly action: 'create' | 'update' | 'delete' | 'unchanged'
  readonly name: string
  readonly id?: string
  readonly version?: number
  readonly changes?: Changes
}

/** A record's step as it is shown, and what is sent for it. */
interface Planned {
  readonly step: Step
  readonly one: string
  readonly path: string
  body(): Record<string, unknown>
}

type Plan = (file: Record<string, unknown>, options: PlanOptions) => Promise<Planned[]>

interface PlanOptions {
  readonly path: string
  readonly api: Api
  readonly prune: boolean
  readonly secrets: boolean
  readonly terminal: Terminal
}

const plans: Readonly<Record<string, Plan>> = {
  [providers.member]: planOf(providers),
  [policies.member]: planOf(policies),
  [mcpServers.member]: planOf(mcpServers),
  [identityProviders.member]: planOf(identityProviders),
  [managedSettings.member]: planOf(managedSettings),
  [models.member]: planOf(models),
}

export const applyCommand = (terminal: Terminal) =>
  defineCommand({
    meta: {
      description: `Make records be what a file says, and what it leaves out as in a new record: YAML, TOML or JSON with lists named ${Object.keys(plans).join(', ')}`,
    },
    args: {
      file: { type: 'string', alias: 'f', required: true, description: 'The file', valueHint: 'FILE' },
      'dry-run': { type: 'boolean', description: 'Only show what would change' },
      secrets: { type: 'boolean', description: 'Send secrets too where nothing else differs: theirs are not compared' },
      prune: { type: 'boolean', description: 'Delete what a list of the file does not name' },
      yes: { type: 'boolean', description: 'With --prune: really delete them' },
      ...recordFlags,
    },
    async run({ args }) {
      const dryRun = args['dry-run'] === true
      if (args.prune && !args.yes && !dryRun) {
        throw new Failure('usage', { message: 'Deleting cannot be undone: repeat with --yes, or look with --dry-run' })
      }
      const [path, api] = [args.file, connect(args, terminal)]
      const options = { path, api, terminal, prune: args.prune === true, secrets: args.secrets === true }
      const planned = await planFile(readFile(path), options)
      // A secret that is missing is found before anything is changed.
      const bodies = dryRun ? [] : planned.map(({ body }) => body())
      for (const [index, each] of planned.entries()) {
        if (!dryRun) await take(api, each, bodies[index])
        if (!args.json) await terminal.write(`${lineOf(each)}\n`)
      }
      const steps = planned.map(({ step, one }) => ({ record: one, ...step }))
      if (args.json) await terminal.write(`${JSON.stringify({ applied: !dryRun, steps })}\n`)
      else if (dryRun) terminal.note('Nothing was changed')
    },
  })

function readFile(path: string): Record<string, unknown> {
  const file = checked(z.record(z.string(), z.unknown()), readStructuredFile(path), path)
  const [unknown] = Object.keys(file).filter((name) => !Object.hasOwn(plans, name))
  if (unknown !== undefined) throw new Failure('usage', { message: `${path}: ${unknown}: nothing has this name` })
  if (Object.keys(file).length > 0) return file
  throw new Failure('usage', { message: `${path} has no list: ${Object.keys(plans).join(', ')}` })
}

/** All of a file is read and compared before anything is done. */
async function planFile(file: Record<string, unknown>, options: PlanOptions): Promise<Planned[]> {
  const planned: Planned[] = []
  for (const [member, plan] of Object.entries(plans)) {
    if (file[member] !== undefined) planned.push(...(await plan(file, options)))
  }
  return planned
}

/** What has to be done of one kind, in the order of the file, deletions last. */
function planOf<Wanted extends { name: string }>(kind: ApplyKind<Wanted>): Plan {
  return async (file, { path, api, prune, secrets, terminal }) => {
    const wanted = checked(z.array(kind.entry), file[kind.member], `${path}: ${kind.member}`)
    requireOnce(wanted, kind, path)
    for (const entry of wanted) checkEntry(entry, kind, path)
    const present = await readPresent(api, kind)
    const planned = wanted.map((entry): Planned => {
      const { name } = entry
      const known = present.find((record) => record.name === name)
      const of = { one: kind.one, path: kind.path }
      if (known === undefined) {
        return { ...of, step: { action: 'create', name }, body: () => kind.bodyOf(entry, null, terminal) }
      }
      const { id, version } = known
      const changes = kind.changesOf(entry, known)
      const resent = secrets && kind.hasSecrets?.(entry) === true
      if (Object.keys(changes).length === 0 && !resent) return nothingToDo(of, name)
      return {
        ...of,
        step: { action: 'update', name, id, version, changes },
        body: () => ({
          ...kind.bodyOf(entry, changes, terminal),
          ...(resent ? kind.secretsOf?.(entry, terminal) : {}),
        }),
      }
    })
    const named = new Set(wanted.map(({ name }) => name))
    const gone = prune ? present.filter(({ name }) => !named.has(name)) : []
    return [...planned, ...gone.map((record) => deletion(record, kind))]
  }
}

const nothing = () => ({})
const nothingToDo = (of: { one: string; path: string }, name: string): Planned => ({
  ...of,
  step: { action: 'unchanged', name },
  body: nothing,
})
const deletion = ({ id, name }: Present, { one, path }: { one: string; path: string }): Planned => ({
  one,
  path,
  step: { action: 'delete', name, id },
  body: nothing,
})

function requireOnce(wanted: readonly { name: string }[], { one }: { one: string }, path: string): void {
  const names = wanted.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new Failure('usage', { message: `${path} names the ${one} "${twice}" twice` })
}

function checkEntry<Wanted extends { name: string }>(entry: Wanted, { check, one }: ApplyKind<Wanted>, path: string) {
  try {
    check(entry)
  } catch (thrown) {
    const { message, param } = asFailure(thrown)
    const what = param === null ? message : `${param}: ${message}`
    throw new Failure('usage', { message: `${path}: the ${one} "${entry.name}": ${what}`, cause: thrown })
  }
}

function checked<Value>(schema: z.ZodType<Value>, value: unknown, where: string): Value {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new Failure('usage', { message: `${where}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not valid'}` })
}

const presentSchema = z
  .looseObject({ id: z.string(), name: z.string().optional(), version: z.number() })
  .transform((record) => ({ ...record, name: record.name ?? record.id }))

async function readPresent(api: Api, { path, member }: { path: string; member: string }): Promise<Present[]> {
  const found: Present[] = []
  let cursor: string | undefined
  do {
    const page = await api.json({ path, query: { cursor } }, pageSchema)
    found.push(...z.array(presentSchema).parse(page[member]))
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  return found
}

/** The error names the record whose change the API refuses, because a file has many. */
async function take(api: Api, planned: Planned, body: unknown): Promise<void> {
  try {
    await request(api, planned, body)
  } catch (thrown) {
    if (!(thrown instanceof ApiRefusal)) throw thrown
    const { status, code, message, param, requestId } = thrown
    const which = `${planned.one} "${planned.step.name}"`
    throw new ApiRefusal({ status, code, message: `${which}: ${message}`, param, requestId })
  }
}

async function request(api: Api, { step: { action, id, version }, path }: Planned, body: unknown): Promise<void> {
  if (action === 'unchanged') return
  if (action === 'create') {
    await api.json({ method: 'POST', path, body }, presentSchema)
  } else if (action === 'update') {
    const headers = { 'if-match': `"${version}"` }
    await api.json({ method: 'PATCH', path: `${path}/${encodeURIComponent(id ?? '')}`, body, headers }, presentSchema)
  } else {
    await api.json({ method: 'DELETE', path: `${path}/${encodeURIComponent(id ?? '')}` }, presentSchema)
  }
}

const signs = { create: '+', update: '~', delete: '-', unchanged: '=' } as const

function lineOf({ step: { action, name, changes = {} }, one }: Planned): string {
  const lines = Object.entries(changes).map(
    ([field, { from, to }]) =>
      `    ${field}: ${printable(JSON.stringify(from ?? null))} -> ${printable(JSON.stringify(to))}`,
  )
  return [`${signs[action]} ${one} ${printable(name)}`, ...lines].join('\n')
}
